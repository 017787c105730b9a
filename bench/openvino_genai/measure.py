# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO GenAI does with a model: prefill of one prompt, and a batch of offline requests.

Runs in the environment that `setup` made; prints one JSON object. Prompts are token ids, so that both
sides get exactly the same lengths. Settings are the best that were found on a CPU: the continuous-batching
back end (faster than SDPA in both cases), as many batched tokens as there are (the default of 256 costs it
a quarter), no prefix cache (no prompt repeats); the rest are its defaults, which are faster than what else
was tried (float32 inference, larger groups of dynamic quantisation, the throughput hint).
"""

import argparse
import json
import random
import statistics
import time

import numpy
import openvino
import openvino_genai

MAX_BATCHED_TOKENS = 4096
REPORTED = ("INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION", "DYNAMIC_QUANTIZATION_GROUP_SIZE")


def inputs(rng, rows, tokens, vocabulary):
    ids = numpy.array([[rng.randrange(1000, vocabulary) for _ in range(tokens)] for _ in range(rows)], numpy.int64)
    return openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))


def plain(value):
    """A property in words: an element type by its name."""
    return value.get_type_name() if isinstance(value, openvino.Type) else str(value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens-in", type=int, required=True)
    parser.add_argument("--tokens-out", type=int, required=True)
    parser.add_argument("--runs", type=int, default=3, help="of the prefill; the median counts")
    parser.add_argument("--vocabulary", type=int, default=30000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_seqs = options.requests
    scheduler.max_num_batched_tokens = MAX_BATCHED_TOKENS
    scheduler.enable_prefix_caching = False
    scheduler.cache_size = 1  # GB
    began = time.perf_counter()
    pipeline = openvino_genai.LLMPipeline(options.model, "CPU", scheduler_config=scheduler,
                                          INFERENCE_NUM_THREADS=options.threads)
    load_s = time.perf_counter() - began

    config = openvino_genai.GenerationConfig()
    config.do_sample, config.ignore_eos = False, True

    def run(rows, tokens_in, tokens_out):
        config.max_new_tokens = tokens_out
        given = inputs(rng, rows, tokens_in, options.vocabulary)
        start = time.perf_counter()
        result = pipeline.generate(given, config)
        seconds = time.perf_counter() - start
        return seconds, [len(tokens) for tokens in result.tokens]

    run(1, options.prefill, 2)  # warm: both shapes
    run(options.requests, options.tokens_in, 2)
    prefill_s = statistics.median(run(1, options.prefill, 1)[0] for _ in range(options.runs))
    batch_s, made = run(options.requests, options.tokens_in, options.tokens_out)
    core = openvino.Core()
    print(json.dumps({"version": openvino_genai.get_version(), "load_s": load_s,
                      "prefill_tokens_per_s": options.prefill / prefill_s, "batch_s": batch_s,
                      "batch_tokens": made, "batch_tokens_per_s": sum(made) / batch_s,
                      "settings": {name: plain(core.get_property("CPU", name)) for name in REPORTED}}))


if __name__ == "__main__":
    main()
