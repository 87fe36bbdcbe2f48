/**
 * Every bound of a pipeline file in one place. They are checked before the work that they bound, so that the time to
 * refuse a file does not grow with what the file asks for.
 */
export const PIPELINE_LIMITS = {
  /** UTF-8 bytes of the file: what a run's first event can carry beside the rest of a 900 KiB commit. */
  textBytesMax: 512 * 1024,
  /** Lexical YAML tokens. The parser takes up to a microsecond for each, so this bounds what a file of no sense costs. */
  tokensMax: 40_000,
  /** As many more for each line of the second level: a stage takes 15 to 30, and one that uses most keys 110. 512 KiB have room for no more. */
  tokensPerEntry: 100,
  /** Those lines: 2,000 stages, and what stands under 'env', 'on' and the like. */
  entriesMax: 2_400,
  /** Nested lists and maps. The YAML parser recurses and aborts the process at about 1,000 levels. */
  depthMax: 64,
  anchorsMax: 100,
  aliasesMax: 100,
  /** Nodes and text after every alias has been replaced by what it stands for. */
  expandedNodesMax: 60_000,
  expandedTextMax: 1024 * 1024,
  /** Stages after the matrices have been expanded. */
  stagesMax: 2_000,
  /** `after` edges after expansion: two matrices of 256 behind one another are 65,536. */
  dependenciesMax: 100_000,
  /** Characters of all stages after expansion, with their scripts, variables, names and dependencies: what holding a definition may cost. */
  definitionTextMax: 8 * 1024 * 1024,
  matrixCellsMax: 256,
  matrixAxesMax: 16,
  /** Combinations of the axes of one matrix, and of all matrices together, before `exclude` takes some away. */
  matrixProductMax: 1_024,
  matrixProductsTotalMax: 20_000,
  /** Entries of one `include` or `exclude`. */
  matrixEntriesMax: 256,
  matrixValueLengthMax: 100,
  /** Values that `include` adds, to the combinations of all matrices of a file: each entry may add thousands to each combination. */
  matrixAddedValuesMax: 200_000,
  stageNameLengthMax: 128,
  /** The name of an expansion, `test (node=24, os=linux)`. */
  expandedNameLengthMax: 256,
  pipelineNameLengthMax: 200,
  descriptionLengthMax: 2_000,
  engineLengthMax: 100,
  commandsMax: 200,
  /** Bytes that one command may take: Linux passes no single argument above 128 KiB to a program. */
  commandBytesMax: 120 * 1024,
  /** Variables of one `env`, and the bytes of one value before its expressions are filled in. */
  envCountMax: 256,
  envValueBytesMax: 32 * 1024,
  outputsMax: 100,
  outputNameLengthMax: 100,
  /** Of why a stage is in quarantine. */
  quarantineReasonLengthMax: 500,
  /** Of a stage. */
  secretsMax: 20,
  secretNameLengthMax: 100,
  /** Of a stage, each for an audience of its own. */
  idTokensMax: 5,
  audienceLengthMax: 500,
  labelsMax: 20,
  labelLengthMax: 64,
  /** Characters of the labels of one stage. */
  labelsTextMax: 512,
  /** Different sets of labels in one file, and the characters of all of them: what a scheduler announces as wanted. */
  labelSetsMax: 100,
  labelSetsTextMax: 16 * 1024,
  /** Of an image, with its registry, tag and digest. */
  imageLengthMax: 512,
  entrypointMax: 20,
  servicesMax: 10,
  /** Of a command that says whether a service may be used. */
  readyLengthMax: 4_096,
  readyTimeoutMsMax: 3_600_000,
  cpuMin: 0.01,
  cpuMax: 1_024,
  /** With less no container starts. */
  memoryBytesMin: 8 * 1024 ** 2,
  memoryBytesMax: 16 * 1024 ** 4,
  pathLengthMax: 1_024,
  groupLengthMax: 256,
  globsMax: 100,
  globLengthMax: 256,
  schedulesMax: 20,
  cronLengthMax: 200,
  /** One `${{ }}`. */
  expressionLengthMax: 2_000,
  expressionDepthMax: 50,
  expressionsPerTextMax: 100,
  /** Nodes of one expression once the inputs of extensions stand in it. Evaluation recurses, and an input may be made of another. */
  expressionNodesMax: 2_000,
  /** Different `uses` of a run, those that extensions lead to included; how deep they lead; the text of all their manifests. */
  extensionsMax: 100,
  extensionDepthMax: 5,
  extensionsTextMax: 512 * 1024,
  /** UTF-8 bytes of one `extension.yaml`. */
  manifestBytesMax: 64 * 1024,
  /** Of an extension. */
  inputsMax: 100,
  pipelineInputsMax: 50,
  /** UTF-8 bytes of the values of all inputs of a run. */
  inputsBytesMax: 64 * 1024,
  inputNameLengthMax: 100,
  choicesMax: 100,
  choiceLengthMax: 200,
  extensionDescriptionLengthMax: 500,
  /** Of a stage; how many beginnings each tries; characters of a key as it is on the runner. */
  cachesMax: 10,
  restoreMax: 10,
  cacheKeyLengthMax: 512,
  /** Stages with `approval`: each is shown with its message and its decisions. */
  gatesMax: 100,
  /** Of one gate. */
  approversMax: 50,
  approverLengthMax: 254,
  approvalMessageLengthMax: 2_000,
  /** UTF-8 bytes of the stages that one attempt of a stage adds to its run, and how deep stages that were added may add others. */
  addedTextBytesMax: 256 * 1024,
  addedDepthMax: 3,
  /** Bytes of all texts of a run as they are journaled, which is compressed. */
  runTextsBytesMax: 768 * 1024,
  /** Names of secrets, and audiences, that a stage which adds others may allow them. */
  ceilingMax: 100,
  approvalTimeoutMsMin: 1_000,
  approvalTimeoutMsDefault: 30 * 24 * 3_600_000,
  approvalTimeoutMsMax: 365 * 24 * 3_600_000,
  artifactExpireMsMin: 60_000,
  artifactExpireMsMax: 3_650 * 24 * 3_600_000,
  timeoutMsMin: 1_000,
  timeoutMsMax: 7 * 24 * 3_600_000,
  timeoutMsDefault: 3_600_000,
  retryMax: 10,
  retryDelayMsDefault: 1_000,
  retryDelayMsMax: 3_600_000,
  /** Problems that one report shows; a last line counts the rest. */
  diagnosticsMax: 50,
} as const;
