/** What keeps a stage from being started that is not the runner's own fault. */
import { TaggedError } from '@penstock/errors';

/** The machine gives neither namespaces nor users: whatever a stage starts can read this process and outlive its stage. */
export class NotIsolated extends TaggedError {
  readonly tag = 'NotIsolated';

  constructor() {
    super(
      'stages cannot be kept apart from the other processes of this machine: start as root on Linux, or allow unprivileged user ' +
        'namespaces (sysctl kernel.unprivileged_userns_clone=1); SERVICE_ALLOW_UNISOLATED=true starts all the same',
    );
  }
}

/** Its message goes into the log of the stage. */
export class NotPrepared extends TaggedError {
  readonly tag = 'NotPrepared';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** Each would end what the other runs, and remove what it needs. */
export class RunnerFolderInUse extends TaggedError {
  readonly tag = 'RunnerFolderInUse';

  constructor(dataDir: string, holder: string, options: ErrorOptions) {
    super(
      `another runner${holder} keeps its runs in ${dataDir}: stop it, or give each runner of this machine a data folder of its own ` +
        '(SERVICE_DATA_DIR, --data-dir)',
      options,
    );
  }
}
