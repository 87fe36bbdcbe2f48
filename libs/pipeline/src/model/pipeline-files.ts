/** Where a folder or a repository has its pipeline file: the first of these that is there counts. The last one is where files stood in earlier releases. */
export const PIPELINE_FILES = ['.pipeline.yaml', '.pipeline.yml', '.pipeline/pipeline.yaml'] as const;
