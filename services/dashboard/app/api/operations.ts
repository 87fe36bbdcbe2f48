/** Made from the schema by `test/operations.ts`: `npm test -- services/dashboard/test/operations.test.ts -u` makes it anew. */

export type RunStatus = 'PENDING' | 'QUEUED' | 'RUNNING' | 'SUCCESS' | 'FAILED' | 'SKIPPED' | 'CANCELLED';

export interface Operations {
  readonly Runs: {
    readonly variables: {
      readonly limit?: number | null | undefined;
      readonly before?: string | null | undefined;
      readonly pipelineName?: string | null | undefined;
      readonly status?: RunStatus | null | undefined;
      readonly repository?: string | null | undefined;
      readonly ref?: string | null | undefined;
    };
    readonly data: {
      readonly runs: readonly {
        readonly id: string;
        readonly pipelineName: string;
        readonly status: RunStatus;
        readonly startedAt: string;
        readonly finishedAt: string | null;
        readonly verdict: string | null;
        readonly trigger: string;
        readonly actor: string | null;
        readonly repository: string | null;
        readonly ref: string | null;
        readonly commit: string | null;
      }[];
    };
  };
  readonly RunRow: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly run: {
        readonly id: string;
        readonly pipelineName: string;
        readonly status: RunStatus;
        readonly startedAt: string;
        readonly finishedAt: string | null;
        readonly verdict: string | null;
        readonly trigger: string;
        readonly actor: string | null;
        readonly repository: string | null;
        readonly ref: string | null;
        readonly commit: string | null;
      } | null;
    };
  };
  readonly Run: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly atVersion?: number | null | undefined;
    };
    readonly data: {
      readonly run: {
        readonly id: string;
        readonly pipelineName: string;
        readonly status: RunStatus;
        readonly startedAt: string;
        readonly finishedAt: string | null;
        readonly verdict: string | null;
        readonly trigger: string;
        readonly actor: string | null;
        readonly repository: string | null;
        readonly ref: string | null;
        readonly commit: string | null;
        readonly outcome: string | null;
        readonly reason: string | null;
        readonly source: string | null;
        readonly trusted: boolean;
        readonly provider: string | null;
        readonly verdictEvidence: readonly string[];
        readonly parentRunId: string | null;
        readonly rootRunId: string | null;
        readonly children: readonly string[];
        readonly inputs: readonly {
          readonly key: string;
          readonly value: string;
        }[];
        readonly tick: {
          readonly cron: string;
          readonly at: string;
          readonly missed: number;
        } | null;
        readonly waitingOn: readonly {
          readonly kind: string;
          readonly holder: string | null;
          readonly position: number | null;
          readonly since: string | null;
          readonly etaSecs: number | null;
          readonly message: string;
        }[];
        readonly stages: readonly {
          readonly name: string;
          readonly after: readonly string[] | null;
          readonly status: RunStatus;
          readonly startedAt: string | null;
          readonly finishedAt: string | null;
          readonly reason: string | null;
          readonly attempt: number;
          readonly exitCode: number | null;
          readonly adopted: boolean;
          readonly gate: {
            readonly approvers: readonly string[] | null;
            readonly quorum: number;
            readonly preventSelf: boolean;
            readonly dueAt: string | null;
            readonly message: string | null;
          } | null;
          readonly approvals: readonly {
            readonly by: string;
            readonly decision: string;
            readonly comment: string | null;
            readonly at: string;
          }[];
          readonly tests: {
            readonly total: number;
            readonly passed: number;
            readonly failed: number;
            readonly skipped: number;
          } | null;
          readonly waitingOn: readonly {
            readonly kind: string;
            readonly holder: string | null;
            readonly position: number | null;
            readonly since: string | null;
            readonly etaSecs: number | null;
            readonly message: string;
          }[];
        }[];
      } | null;
    };
  };
  readonly Cancel: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly cancelPipeline: {
        readonly cancelledStages: number;
      };
    };
  };
  readonly Rerun: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly from?: readonly string[] | null | undefined;
      readonly onlyFailed?: boolean | null | undefined;
    };
    readonly data: {
      readonly rerunPipeline: {
        readonly run: {
          readonly id: string;
        };
      };
    };
  };
  readonly ApproveRun: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly approveRun: {
        readonly id: string;
      };
    };
  };
  readonly ApproveStage: {
    readonly variables: {
      readonly runId?: string | null | undefined;
      readonly stage?: string | null | undefined;
      readonly comment?: string | null | undefined;
    };
    readonly data: {
      readonly approveStage: {
        readonly name: string;
      };
    };
  };
  readonly RejectStage: {
    readonly variables: {
      readonly runId?: string | null | undefined;
      readonly stage?: string | null | undefined;
      readonly comment?: string | null | undefined;
    };
    readonly data: {
      readonly rejectStage: {
        readonly name: string;
      };
    };
  };
}
