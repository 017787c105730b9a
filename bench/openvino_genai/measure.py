# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO GenAI does with a GGUF file: prefill of one prompt, and a batch of offline requests.

Runs in the environment that `setup` made; prints one JSON object. Prompts are token ids, so that
both sides get exactly the same lengths. The continuous-batching back end (with its paged cache) is
used for both: it is the faster one for batches.
"""

import argparse
import json
import random
import time

import numpy
import openvino
import openvino_genai


def inputs(rng, rows, tokens, vocabulary):
    ids = numpy.array([[rng.randrange(1000, vocabulary) for _ in range(tokens)] for _ in range(rows)], numpy.int64)
    return openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prefill", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens-in", type=int, required=True)
    parser.add_argument("--tokens-out", type=int, required=True)
    parser.add_argument("--vocabulary", type=int, default=30000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_seqs = max(options.requests, 1)
    scheduler.max_num_batched_tokens = 4096
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
        made = sum(len(tokens) for tokens in result.tokens)
        return seconds, made

    run(1, 64, 4)  # warm
    prefill_s = min(run(1, options.prefill, 1)[0] for _ in range(2))
    batch_s, made = run(options.requests, options.tokens_in, options.tokens_out)
    print(json.dumps({"version": openvino_genai.get_version(), "load_s": load_s,
                      "prefill_tokens_per_s": options.prefill / prefill_s, "batch_s": batch_s,
                      "batch_tokens": made, "batch_tokens_per_s": made / batch_s}))


if __name__ == "__main__":
    main()
