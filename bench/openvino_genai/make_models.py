# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's own models of an F16 GGUF file: openvino-int8 and openvino-int4 in a folder.

GenAI reads GGUF and can keep what it made of it; NNCF then compresses the weights the way OpenVINO's
published models are: INT8 asymmetric, one scale per channel; INT4 symmetric in groups of 64 (128, the
usual size, does not divide 576) with the embedding in INT8. These run faster than GGUF read directly.
"""
import pathlib
import shutil
import sys
import tempfile

import nncf
import openvino
import openvino_genai

KINDS = {"openvino-int8": {"mode": nncf.CompressWeightsMode.INT8_ASYM},
         "openvino-int4": {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": 64, "ratio": 1.0}}


def main():
    gguf, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=out) as folder:
        folder = pathlib.Path(folder)
        (folder / gguf.name).symlink_to(gguf)  # what GenAI keeps lies beside the file it was given
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 1
        openvino_genai.LLMPipeline(str(folder / gguf.name), "CPU", scheduler_config=scheduler,
                                   enable_save_ov_model=True)
        for name, how in KINDS.items():
            model = nncf.compress_weights(openvino.Core().read_model(folder / "openvino_model.xml"), **how)
            made = folder / name
            made.mkdir()
            openvino.save_model(model, made / "openvino_model.xml", compress_to_fp16=False)
            for file in [*folder.glob("openvino_tokenizer.*"), *folder.glob("openvino_detokenizer.*")]:
                shutil.copy(file, made)
            shutil.rmtree(out / name, ignore_errors=True)
            made.rename(out / name)


main()
