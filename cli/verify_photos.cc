// SPDX-License-Identifier: Apache-2.0
// polyop verify --images: compares what two models find on photos.
#include <iostream>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/number.h"
#include "cli/base/text.h"
#include "cli/progress.h"
#include "cli/python.h"
#include "cli/verifying.h"

namespace polyop::cli {
namespace {

Json Ask(const VerifyOptions& options, const Reference& reference) {
  const InputOptions& input = options.input;
  const Progress progress("verifying " + options.model);
  return AskPython(
      "verify_photos",
      {{"model", options.model},
       {"provider", options.provider},
       {"reference", {{"kind", reference.kind}, {"value", reference.value}, {"provider", options.against_provider}}},
       {"images", options.images},
       {"detections", !options.task.empty()},
       {"image_options",
        {{"layout", input.layout},
         {"range", input.range},
         {"color", input.color},
         {"resize", input.resize},
         {"letterbox", input.letterbox},
         {"mean", input.mean},
         {"std", input.std}}},
       {"set", input.sets},
       {"draw", options.draw},
       {"page", !options.report.empty()},
       {"memory", MemoryLimit()},
       {"iou", options.iou},
       {"rtol", options.tolerance.relative},
       {"atol", options.tolerance.absolute},
       {"threads", options.session.threads},
       {"accelerate", options.session.accelerate},
       {"libraries", options.session.libraries}},
      "polyop, ONNX Runtime and Pillow (pip install 'polyop[batch,optimize]')");
}

void PrintDetections(const Json& report, const VerifyOptions& options, bool has_truth) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& photo : report.at("worst")) {
    rows.push_back({photo.at("photo").get<std::string>(), Concat(photo.at("missing").get<int64_t>()),
                    Concat(photo.at("additional").get<int64_t>()), Concat(photo.at("moved").get<int64_t>()),
                    photo.at("drawing").get<std::string>()});
  }
  if (!rows.empty()) std::cout << Table({"photo", "missing", "additional", "moved", "drawing"}, rows) << "\n";
  const int64_t expected = report.at("expected"), found = report.at("found"), matched = report.at("matched");
  std::cout << "  " << report.at("photos") << " photo(s), " << expected
            << (has_truth ? " true objects, " : " detections of the reference, ") << found
            << (has_truth ? " detections of the model, " : " of the model, ") << matched
            << " of both (class, and IoU of at least " << NumberText(options.iou, "%g") << ")\n  lost "
            << expected - matched << ", gained " << found - matched << ", moved by more than a pixel "
            << report.at("moved") << " (at most " << NumberText(report.at("largest_move").get<double>(), "%.2f")
            << " pixels)\n  mean average precision " << NumberText(report.at("average_precision").get<double>(), "%.4f")
            << ", over IoUs from 0.5 to 0.95 " << NumberText(report.at("coco_precision").get<double>(), "%.4f") << "\n";
}

void PrintMaps(const Json& report) {
  const auto share = [](const Json& of) {
    return NumberText(100 * of.at("equal_pixels").get<double>(), "%.2f") + " %";
  };
  std::vector<std::vector<std::string>> rows;
  for (const Json& photo : report.at("worst")) {
    rows.push_back({photo.at("photo").get<std::string>(), share(photo), photo.at("drawing").get<std::string>()});
  }
  if (!rows.empty()) std::cout << Table({"photo", "equal pixels", "drawing"}, rows) << "\n";
  std::cout << "  " << report.at("photos") << " photo(s), " << report.at("classes") << " classes\n  mean IoU "
            << NumberText(report.at("mean_iou").get<double>(), "%.4f") << ", equal pixels " << share(report) << "\n";
}

}  // namespace

Json VerifyPhotos(const VerifyOptions& options, const Reference& reference) {
  const bool has_truth = reference.kind == "truth";
  Json report = Ask(options, reference);
  const bool has_maps = report.contains("mean_iou"), has_boxes = report.contains("average_precision");
  const bool has_detections = has_maps || has_boxes;
  const double expected = options.min_precision.value_or(has_truth ? 0 : 0.95);
  bool equal = !has_detections || report.at(has_maps ? "mean_iou" : "average_precision").get<double>() >= expected;
  // With detections, elements of the raw outputs differ by rounding; the detections decide.
  for (const Json& tensor : report.at("tensors")) equal &= has_detections || tensor.at("equal").get<bool>();
  report["reference"] = reference.text;
  report["equal"] = equal;
  if (options.json) return report;
  PrintTensors(report, options);
  if (has_detections) {
    has_maps ? PrintMaps(report) : PrintDetections(report, options, has_truth);
    std::cout << (equal ? Green("agrees") : Red("differs")) << ": expected a mean "
              << (has_maps ? "IoU" : "average precision") << " of at least " << NumberText(expected, "%g") << "\n";
  } else {
    std::cout << (equal ? Green("equal") : Red("differs")) << ": " << report.at("photos") << " photo(s)\n";
  }
  return report;
}

}  // namespace polyop::cli
