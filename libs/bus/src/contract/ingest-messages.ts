/**
 * What the gateway asks of the webhook ingest (`callService(bus, 'webhook-ingest', verb, request)`). Who asks has been
 * checked by the gateway; which tenants and which user it asks for is said with each question.
 */
import type { ResolvedExtension } from '@penstock/pipeline';
import type { HookCalls } from './hook-messages.ts';

/** Each verb with its question and its answer. */
export interface IngestCalls extends HookCalls {
  /** BAD_USER_INPUT: no such provider, no name of a repository or of a secret. CONFLICT: connected already, or too many are. */
  readonly connect: {
    readonly request: {
      readonly userId: string;
      readonly provider: string;
      readonly repository: string;
      /** The name of the secret that it is read with; absent: with what the server has. */
      readonly cloneSecret?: string | undefined;
    };
    readonly answer: NewConnectionView;
  };
  /** NOT_FOUND: no such connection, or another user's. BAD_USER_INPUT: the ref is not there. UNAVAILABLE: the host does not answer. */
  readonly verify: {
    readonly request: { readonly userId: string; readonly id: string };
    readonly answer: ConnectionView;
  };
  /** From the next fetch on. `name` null: with what the server has. NOT_FOUND: no such connection, or another user's. BAD_USER_INPUT: no name of a secret. */
  readonly 'clone-secret': {
    readonly request: { readonly userId: string; readonly id: string; readonly name: string | null };
    readonly answer: ConnectionView;
  };
  /** The newest first. */
  readonly connections: {
    readonly request: { readonly userId: string };
    readonly answer: { readonly repositories: readonly ConnectionView[] };
  };
  /** NOT_FOUND: no such connection, or another user's. */
  readonly disconnect: {
    readonly request: { readonly userId: string; readonly id: string };
    readonly answer: { readonly disconnected: true };
  };
  /**
   * What a repository that nobody has connected wants to be started ends; soon after the answer. It comes back with the next push to its
   * default branch that brings a schedule.
   */
  readonly 'schedule.end': {
    readonly request: { readonly provider: string; readonly repository: string };
    readonly answer: { readonly ended: true };
  };
  /** Of some of a tenant's processed deliveries nothing stays but that they came; to be asked again while there may be more. */
  readonly 'deliveries.forget': {
    readonly request: { readonly tenant: string };
    readonly answer: { readonly forgotten: number; readonly more: boolean };
  };
  /** The newest first; those not processed yet are not among them. */
  readonly deliveries: {
    readonly request: { readonly tenants: readonly string[]; readonly limit: number };
    readonly answer: { readonly deliveries: readonly DeliveryView[] };
  };
  /** By our id, the host's, or that of the run. */
  readonly delivery: {
    readonly request: { readonly id: string; readonly tenants: readonly string[] };
    readonly answer: { readonly delivery: DeliveryView | null };
  };
  /**
   * NOT_FOUND, or BAD_USER_INPUT for one of which nothing could ever come. `dryRun`: decided anew, and nothing started. `repeats`:
   * what comes of it repeats a run of which nothing came (P30); asked again with the same id it is decided once.
   */
  readonly replay: {
    readonly request: {
      readonly id: string;
      readonly tenants: readonly string[];
      readonly dryRun: boolean;
      readonly repeats?: RepeatedDelivery | undefined;
    };
    readonly answer: DeliveryView;
  };
  /**
   * The repository's own file at a branch or a tag, for a run of it. NOT_FOUND: the user has not connected it. FORBIDDEN: nothing
   * proves it the user's, or this server takes no runs of it. BAD_USER_INPUT: no such ref, no file, or a bad one. UNAVAILABLE: the host does not answer.
   */
  readonly file: { readonly request: FileRequest; readonly answer: RepositoryFile };
}

export interface RepeatedDelivery {
  /** The run that is repeated. */
  readonly run: string;
  /** The new one. */
  readonly runId: string;
  /** Who repeats it. */
  readonly actor: string;
}

export interface FileRequest {
  /** Absent: whoever has the API key. */
  readonly userId?: string | undefined;
  readonly provider: string;
  readonly repository: string;
  /** By its name, or in full. */
  readonly ref: string;
}

export interface RepositoryFile {
  readonly provider: string;
  readonly repository: string;
  /** In full. */
  readonly ref: string;
  readonly commit: string;
  readonly cloneUrl: string;
  /** Its path there, or `server_template`. */
  readonly source: string;
  readonly yaml: string;
  readonly extensions: readonly ResolvedExtension[];
  /** What its runs count against, and are ordered by. */
  readonly tenant: string;
  readonly key: string;
  readonly trusted: boolean;
  /** By its short name, as a delivery that is trusted last said it; absent: none has. */
  readonly defaultBranch?: string | undefined;
}
export type IngestVerb = keyof IngestCalls;

export interface ConnectionView {
  readonly id: string;
  /** `git_host_a` or `git_host_b`. */
  readonly provider: string;
  readonly repository: string;
  /** What the host is to deliver to. */
  readonly webhookUrl: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** What only who may write to the repository can make. */
  readonly proof: { readonly ref: string };
  /** Whether it was found; until then deliveries of the connection come to nothing. */
  readonly proved: boolean;
  /** The name of the secret that it is read with; null: it is read with what the server has. */
  readonly cloneSecret: string | null;
}

interface NewConnectionView extends ConnectionView {
  /** Shown this once. */
  readonly secret: string;
}

export interface DeliveryView {
  readonly id: string;
  /** As the host gave it, or made by us. */
  readonly deliveryId: string;
  readonly provider: string;
  readonly event: string;
  readonly repository: string;
  readonly ref: string;
  readonly commit: string;
  /** ISO 8601. */
  readonly receivedAt: string;
  /** `server`, `connection` or `none`. */
  readonly verified: string;
  /** `Run`, `Skipped`, `Failed`, `Ignored`; `Pending` while it is not decided. */
  readonly outcome: string;
  readonly runId: string | null;
  readonly pipelineName: string | null;
  readonly source: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly trace: readonly { readonly step: string; readonly passed: boolean; readonly detail: string }[];
  /** The delivery that this one repeats. */
  readonly replayOf: string | null;
}
