// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <utility>

#include "base/registry.hpp"
#include "formats/check_model.hpp"
#include "model/architecture.hpp"
#include "model/decoder.hpp"
#include "model/weights.hpp"

namespace spud::model {

Result<std::shared_ptr<const Model>> Model::load(std::shared_ptr<const formats::ModelFile> file,
                                                 concurrency::ThreadPool& pool,
                                                 const LoadOptions& options) {
  if (file->architecture().empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "metadata 'general.architecture' is missing: not a model that can be run");
  }
  SPUD_TRY(const Architecture* architecture,
           find_in_registry(builtin_architectures(), "architecture", file->architecture()));
  SPUD_TRY(DecoderSpec spec, architecture->describe(*file));
  const kernels::KernelTable kernels = kernels::select_kernels(options.isa_limit);
  SPUD_TRY(DecoderWeights weights, load_weights(*file, spec, kernels, pool, options.packed_folder));
  // After the checks that can name what this graph needs: vocabulary against rows, special ids.
  SPUD_TRY(formats::require_sound_model(*file));
  // The file may be closed now: everything a forward reads is packed or copied.
  return std::make_shared<const Decoder>(std::move(spec), std::move(weights), kernels);
}

}  // namespace spud::model
