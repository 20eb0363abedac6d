import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from "@workflow/serde";

/** The provider's own model cannot be passed to a step: its address is a function, which is lost in serialization. */
export class BenchModel {
  readonly specificationVersion = "v4";
  readonly provider = "bench";
  readonly modelId = "bench";
  readonly supportedUrls = {};

  static [WORKFLOW_SERIALIZE]() {
    return {};
  }

  static [WORKFLOW_DESERIALIZE]() {
    return new BenchModel();
  }

  doGenerate(options: never) {
    return openModel().doGenerate(options);
  }

  doStream(options: never) {
    return openModel().doStream(options);
  }
}

const openModel = () =>
  createOpenAICompatible({ name: "bench", baseURL: process.env["BENCH_MODEL_URL"] ?? "", includeUsage: true })("bench");
