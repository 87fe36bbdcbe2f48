/** The environment of a stage: what its machine lends it, its own variables, and what tells it where it is. */

export interface StageCircumstances {
  readonly runId: string;
  readonly pipeline: string;
  readonly stage: string;
  readonly attempt: number;
  readonly workspace: string;
  readonly outputFile: string;
  /** Takes values to be masked; absent: whoever reads the output cannot see it. */
  readonly maskFile?: string | undefined;
  /** Takes stages to be added to the run; absent: it adds none. */
  readonly stagesFile?: string | undefined;
  /** How the run was triggered. */
  readonly trigger: string;
  readonly repository?: string | undefined;
  readonly ref?: string | undefined;
  readonly commit?: string | undefined;
  /** Where the files of the stage's extension are. */
  readonly extensionFolder?: string | undefined;
}

/** `inherited`: of the machine that the stage runs on. `own`: what the pipeline says; neither can hide the place. */
export function stageEnvironment(
  inherited: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  place: StageCircumstances,
): Record<string, string> {
  const known = {
    PENSTOCK_REPOSITORY: place.repository,
    PENSTOCK_REF: place.ref,
    PENSTOCK_COMMIT: place.commit,
    SERVICE_EXTENSION_PATH: place.extensionFolder,
    SERVICE_MASK: place.maskFile,
    SERVICE_STAGES: place.stagesFile,
  };
  return {
    ...inherited,
    CI: 'true',
    PENSTOCK: 'true',
    ...own,
    PENSTOCK_RUN_ID: place.runId,
    PENSTOCK_PIPELINE: place.pipeline,
    PENSTOCK_STAGE: place.stage,
    PENSTOCK_ATTEMPT: String(place.attempt),
    PENSTOCK_WORKSPACE: place.workspace,
    PENSTOCK_TRIGGER: place.trigger,
    SERVICE_OUTPUT: place.outputFile,
    ...Object.fromEntries(
      Object.entries(known).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
  };
}
