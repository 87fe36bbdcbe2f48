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
        readonly version: number;
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
  readonly RunMoment: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly atVersion?: number | null | undefined;
      readonly after?: number | null | undefined;
    };
    readonly data: {
      readonly run: {
        readonly status: RunStatus;
        readonly finishedAt: string | null;
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
      readonly runEvents: readonly {
        readonly at: string;
        readonly stage: string | null;
        readonly summary: string;
      }[];
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
  readonly StageMore: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly after?: string | null | undefined;
    };
    readonly data: {
      readonly run: {
        readonly stages: readonly {
          readonly name: string;
          readonly outputs: readonly {
            readonly key: string;
            readonly value: string;
          }[];
          readonly attempts: readonly {
            readonly number: number;
            readonly runner: string;
            readonly status: RunStatus;
            readonly reason: string | null;
            readonly exitCode: number | null;
            readonly startedAt: string;
            readonly finishedAt: string | null;
            readonly queuedMs: number;
            readonly logBytes: string | null;
          }[];
        }[];
      } | null;
    };
  };
  readonly Artifacts: {
    readonly variables: {
      readonly runId?: string | null | undefined;
    };
    readonly data: {
      readonly artifacts: readonly {
        readonly stage: string;
        readonly key: string;
        readonly value: string;
        readonly sizeBytes: string | null;
        readonly expiresAt: string | null;
      }[];
    };
  };
  readonly StreamTicket: {
    readonly variables: {
      readonly runId?: string | null | undefined;
    };
    readonly data: {
      readonly createStreamTicket: string;
    };
  };
  readonly TestReport: {
    readonly variables: {
      readonly runId?: string | null | undefined;
      readonly status?: string | null | undefined;
      readonly query?: string | null | undefined;
      readonly after?: string | null | undefined;
    };
    readonly data: {
      readonly testReport: {
        readonly total: number;
        readonly passed: number;
        readonly failed: number;
        readonly skipped: number;
        readonly durationSecs: number;
        readonly cases: readonly {
          readonly stage: string;
          readonly suite: string;
          readonly name: string;
          readonly status: string;
          readonly durationSecs: number;
          readonly message: string | null;
          readonly cursor: string;
        }[];
      } | null;
    };
  };
  readonly RunEvents: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly after?: number | null | undefined;
    };
    readonly data: {
      readonly runEvents: readonly {
        readonly version: number;
        readonly type: string;
        readonly at: string;
        readonly stage: string | null;
        readonly attempt: number | null;
        readonly summary: string;
      }[];
    };
  };
  readonly CompareRuns: {
    readonly variables: {
      readonly a?: string | null | undefined;
      readonly b?: string | null | undefined;
    };
    readonly data: {
      readonly one: {
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
        readonly inputs: readonly {
          readonly key: string;
          readonly value: string;
        }[];
      } | null;
      readonly other: {
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
        readonly inputs: readonly {
          readonly key: string;
          readonly value: string;
        }[];
      } | null;
      readonly compareRuns: readonly {
        readonly stage: string;
        readonly change: string;
        readonly a: {
          readonly status: RunStatus;
          readonly startedAt: string | null;
          readonly finishedAt: string | null;
        } | null;
        readonly b: {
          readonly status: RunStatus;
          readonly startedAt: string | null;
          readonly finishedAt: string | null;
        } | null;
      }[];
    };
  };
  readonly Health: {
    readonly variables: {
      readonly pipelineName?: string | null | undefined;
    };
    readonly data: {
      readonly pipelineHealth: {
        readonly totalRuns: number;
        readonly succeeded: number;
        readonly failed: number;
        readonly interrupted: number;
        readonly infrastructure: number;
        readonly flaky: number;
        readonly successRate: number;
        readonly p50DurationSecs: number;
        readonly p95DurationSecs: number;
        readonly stages: readonly {
          readonly name: string;
          readonly runs: number;
          readonly failures: number;
          readonly avgDurationSecs: number;
          readonly p95DurationSecs: number;
          readonly flaky: boolean;
          readonly flakeRate: number;
        }[];
      };
    };
  };
  readonly Schedules: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly schedules: readonly {
        readonly id: string;
        readonly provider: string;
        readonly repository: string;
        readonly cron: string;
        readonly inputs: readonly {
          readonly key: string;
          readonly value: string;
        }[];
        readonly nextAt: string | null;
        readonly lastRunId: string | null;
        readonly paused: boolean;
      }[];
    };
  };
  readonly PauseSchedule: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly pauseSchedule: {
        readonly id: string;
      };
    };
  };
  readonly ResumeSchedule: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly resumeSchedule: {
        readonly id: string;
      };
    };
  };
  readonly Deliveries: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly webhookDeliveries: readonly {
        readonly id: string;
        readonly provider: string;
        readonly event: string;
        readonly repository: string;
        readonly ref: string;
        readonly commit: string;
        readonly receivedAt: string;
        readonly outcome: string;
        readonly runId: string | null;
        readonly pipelineName: string | null;
        readonly source: string;
        readonly verified: string;
        readonly replayOf: string | null;
        readonly error: {
          readonly code: string;
          readonly message: string;
        } | null;
        readonly trace: readonly {
          readonly step: string;
          readonly passed: boolean;
          readonly detail: string;
        }[];
      }[];
    };
  };
  readonly ReplayDelivery: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly dryRun?: boolean | null | undefined;
    };
    readonly data: {
      readonly replayWebhookDelivery: {
        readonly outcome: string;
        readonly runId: string | null;
        readonly error: {
          readonly message: string;
        } | null;
        readonly trace: readonly {
          readonly step: string;
          readonly passed: boolean;
          readonly detail: string;
        }[];
      };
    };
  };
  readonly Repositories: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly repositories: readonly {
        readonly id: string;
        readonly provider: string;
        readonly repository: string;
        readonly webhookUrl: string;
        readonly createdAt: string;
        readonly proved: boolean;
        readonly proof: {
          readonly ref: string;
        };
        readonly cloneSecret: string | null;
      }[];
    };
  };
  readonly SetCloneSecret: {
    readonly variables: {
      readonly id?: string | null | undefined;
      readonly name?: string | null | undefined;
    };
    readonly data: {
      readonly setCloneSecret: {
        readonly id: string;
      };
    };
  };
  readonly Account: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly me: {
        readonly email: string;
        readonly tier: string;
        readonly isAdmin: boolean;
        readonly pipelineRunLimit: number;
        readonly maxConcurrent: number;
      };
      readonly usage: readonly {
        readonly metric: string;
        readonly total: number;
        readonly limit: number;
        readonly percentage: number;
        readonly status: string;
        readonly periodStart: string;
        readonly periodEnd: string;
      }[];
      readonly apiTokens: readonly {
        readonly id: string;
        readonly name: string;
        readonly scopes: readonly string[];
        readonly createdAt: string;
        readonly lastUsedAt: string | null;
      }[];
      readonly secrets: readonly {
        readonly name: string;
        readonly repository: string | null;
        readonly pipeline: string | null;
        readonly refs: readonly string[] | null;
        readonly updatedAt: string;
        readonly lastUsedAt: string | null;
      }[];
    };
  };
  readonly CreateToken: {
    readonly variables: {
      readonly name?: string | null | undefined;
      readonly scopes?: readonly (string | null)[] | null | undefined;
    };
    readonly data: {
      readonly createApiToken: {
        readonly token: string;
      };
    };
  };
  readonly RevokeToken: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly revokeApiToken: boolean;
    };
  };
  readonly Hooks: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly hooks: readonly {
        readonly id: string;
        readonly url: string;
        readonly events: readonly string[];
        readonly repository: string | null;
        readonly createdAt: string;
        readonly active: boolean;
        readonly failingSince: string | null;
        readonly lastError: string | null;
      }[];
    };
  };
  readonly HookDeliveries: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly hookDeliveries: readonly {
        readonly id: string;
        readonly event: string;
        readonly runId: string;
        readonly status: string;
        readonly attempts: number;
        readonly createdAt: string;
        readonly attemptedAt: string | null;
        readonly nextAttemptAt: string | null;
        readonly responseStatus: number | null;
        readonly responseMs: number | null;
        readonly error: string | null;
      }[];
    };
  };
  readonly CreateHook: {
    readonly variables: {
      readonly url?: string | null | undefined;
      readonly events?: readonly string[] | null | undefined;
      readonly repository?: string | null | undefined;
    };
    readonly data: {
      readonly createHook: {
        readonly secret: string;
      };
    };
  };
  readonly DeleteHook: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly deleteHook: boolean;
    };
  };
  readonly RedeliverHook: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly redeliverHook: {
        readonly status: string;
      };
    };
  };
  readonly AdminStatus: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly adminStatus: {
        readonly isCut: boolean;
        readonly schedulers: readonly {
          readonly id: string;
          readonly answers: boolean;
          readonly trouble: string | null;
          readonly journalUsed: number;
          readonly knowsPauses: boolean;
          readonly partitions: readonly {
            readonly number: number;
            readonly isOpen: boolean;
            readonly runs: number;
            readonly parked: number;
            readonly lagSecs: number;
          }[];
        }[];
        readonly runners: readonly {
          readonly id: string;
          readonly session: string;
          readonly labels: readonly string[];
          readonly slots: number;
          readonly busy: number;
          readonly isDrained: boolean;
          readonly tenant: string | null;
        }[];
        readonly queues: readonly {
          readonly labels: readonly string[];
          readonly key: string;
          readonly stages: number;
          readonly since: string | null;
          readonly isPaused: boolean;
        }[];
        readonly pauses: readonly {
          readonly kind: string;
          readonly name: string | null;
          readonly since: string;
          readonly by: string;
          readonly reason: string | null;
        }[];
      };
      readonly serverConfig: {
        readonly version: string;
        readonly mode: string;
      };
    };
  };
  readonly Pause: {
    readonly variables: {
      readonly key?: string | null | undefined;
      readonly label?: string | null | undefined;
      readonly reason?: string | null | undefined;
    };
    readonly data: {
      readonly adminPause: readonly {
        readonly kind: string;
      }[];
    };
  };
  readonly Resume: {
    readonly variables: {
      readonly key?: string | null | undefined;
      readonly label?: string | null | undefined;
    };
    readonly data: {
      readonly adminResume: readonly {
        readonly kind: string;
      }[];
    };
  };
  readonly Drain: {
    readonly variables: {
      readonly runner?: string | null | undefined;
      readonly reason?: string | null | undefined;
      readonly undo?: boolean | null | undefined;
    };
    readonly data: {
      readonly adminDrain: readonly {
        readonly kind: string;
      }[];
    };
  };
  readonly AuditLog: {
    readonly variables: {
      readonly limit?: number | null | undefined;
    };
    readonly data: {
      readonly auditLog: readonly {
        readonly at: string;
        readonly actor: string;
        readonly action: string;
        readonly target: string;
        readonly outcome: string;
        readonly ip: string | null;
      }[];
    };
  };
  readonly DeadLetters: {
    readonly variables: {
      readonly limit?: number | null | undefined;
    };
    readonly data: {
      readonly adminDeadLetters: readonly {
        readonly id: string;
        readonly tenant: string;
        readonly url: string;
        readonly event: string;
        readonly attempts: number;
        readonly endedAt: string;
        readonly error: string | null;
      }[];
    };
  };
  readonly RedriveLetter: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly adminRedrive: boolean;
    };
  };
  readonly Suspended: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly suspendedUsers: readonly {
        readonly id: string;
        readonly login: string;
        readonly suspendedBy: string;
        readonly suspendedAt: string;
      }[];
    };
  };
  readonly Suspend: {
    readonly variables: {
      readonly login?: string | null | undefined;
    };
    readonly data: {
      readonly suspendUser: {
        readonly id: string;
      };
    };
  };
  readonly Unsuspend: {
    readonly variables: {
      readonly login?: string | null | undefined;
    };
    readonly data: {
      readonly unsuspendUser: boolean;
    };
  };
  readonly Access: {
    readonly variables: {
      readonly repository?: string | null | undefined;
    };
    readonly data: {
      readonly access: readonly {
        readonly login: string;
        readonly role: string;
        readonly grantedAt: string;
      }[];
    };
  };
  readonly GrantAccess: {
    readonly variables: {
      readonly repository?: string | null | undefined;
      readonly login?: string | null | undefined;
      readonly role?: string | null | undefined;
    };
    readonly data: {
      readonly grantAccess: {
        readonly login: string;
      };
    };
  };
  readonly RevokeAccess: {
    readonly variables: {
      readonly repository?: string | null | undefined;
      readonly login?: string | null | undefined;
    };
    readonly data: {
      readonly revokeAccess: boolean;
    };
  };
  readonly Shared: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly sharedRepositories: readonly {
        readonly provider: string;
        readonly repository: string;
        readonly role: string;
        readonly tenant: string;
      }[];
    };
  };
  readonly LeaveRepository: {
    readonly variables: {
      readonly repository?: string | null | undefined;
    };
    readonly data: {
      readonly leaveRepository: boolean;
    };
  };
  readonly RunnerTokens: {
    readonly variables: Record<string, never>;
    readonly data: {
      readonly runnerTokens: readonly {
        readonly id: string;
        readonly name: string;
        readonly labels: readonly string[];
        readonly untrusted: boolean;
        readonly tenant: string | null;
        readonly createdAt: string;
        readonly expiresAt: string | null;
        readonly runners: readonly {
          readonly id: string;
          readonly name: string;
          readonly admittedUntil: string;
        }[];
      }[];
    };
  };
  readonly CreateRunnerToken: {
    readonly variables: {
      readonly name?: string | null | undefined;
      readonly labels?: readonly (string | null)[] | null | undefined;
      readonly expires?: string | null | undefined;
      readonly untrusted?: boolean | null | undefined;
    };
    readonly data: {
      readonly createRunnerToken: {
        readonly token: string;
      };
    };
  };
  readonly RevokeRunnerToken: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly revokeRunnerToken: boolean;
    };
  };
  readonly Extensions: {
    readonly variables: {
      readonly query?: string | null | undefined;
      readonly category?: string | null | undefined;
    };
    readonly data: {
      readonly extensions: readonly {
        readonly id: string;
        readonly description: string;
        readonly category: string;
        readonly downloadCount: string;
        readonly updatedAt: string;
        readonly visibility: string;
        readonly latestVersion: string | null;
      }[];
    };
  };
  readonly Extension: {
    readonly variables: {
      readonly id?: string | null | undefined;
    };
    readonly data: {
      readonly extension: {
        readonly id: string;
        readonly description: string;
        readonly category: string;
        readonly downloadCount: string;
        readonly updatedAt: string;
        readonly visibility: string;
        readonly latestVersion: string | null;
      } | null;
      readonly extensionVersions: readonly {
        readonly version: string;
        readonly packageHash: string;
        readonly sizeBytes: string;
        readonly readme: string | null;
        readonly changelog: string | null;
        readonly yanked: boolean;
        readonly publishedAt: string;
        readonly signed: boolean;
      }[];
    };
  };
  readonly Validate: {
    readonly variables: {
      readonly yaml?: string | null | undefined;
    };
    readonly data: {
      readonly validatePipeline: {
        readonly valid: boolean;
        readonly diagnostics: readonly {
          readonly line: number;
          readonly column: number;
          readonly message: string;
          readonly suggestion: string | null;
        }[];
        readonly stages: readonly {
          readonly name: string;
          readonly after: readonly string[] | null;
        }[];
      };
    };
  };
  readonly Trigger: {
    readonly variables: {
      readonly yaml?: string | null | undefined;
      readonly inputs?: readonly { readonly key: string; readonly value: string }[] | null | undefined;
    };
    readonly data: {
      readonly triggerPipeline: {
        readonly run: {
          readonly id: string;
        };
      };
    };
  };
}
