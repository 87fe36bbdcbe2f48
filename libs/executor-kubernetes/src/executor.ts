/**
 * The Kubernetes executor: a stage is a Pod of one namespace. It holds the Pods of one session of a runner, and watches them; what
 * each of them is and how it ends is `stage-pod.ts`.
 *
 * KUBERNETES-1. Once the session is over no guard is answered and nothing starts; `close` resolves when nothing of it can run any more.
 */
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { bootMs } from '@penstock/async';
import type {
  Executor,
  OutputSink,
  StageExit,
  StageImage,
  StageNotes,
  StageProcess,
  StageRecord,
  StageSpec,
  StopReason,
} from '@penstock/executor';
import type { Cluster } from './cluster/cluster.ts';
import { PodWatch } from './cluster/pod-watch.ts';
import { faultsOfAll } from './pod/bring-all.ts';
import { contentsOf, emptyFoldersOf, type Brought } from './pod/folders.ts';
import { renderPodJob } from './pod/job-text.ts';
import { labelOf, labelsOfSession, selectorOfRunner } from './pod/labels.ts';
import { imagesOf, outputFileOf, refusalOf, type PodLimits } from './pod/pod-manifest.ts';
import { RenewedFiles } from './pod/renewed-files.ts';
import { pastOf, type PodPast } from './pod-notes.ts';
import { StagePod, type Holding } from './stage-pod.ts';
import { endEarlierPod, OrphanSweep } from './sweep.ts';

export interface KubernetesExecutorOptions {
  readonly cluster: Cluster;
  /** The same at each start: Pods that an earlier one has left are found by it. */
  readonly runnerId: string;
  /** Until when what the session holds may run, milliseconds of the boot clock; past once it is over (P15). */
  readonly fence: () => number;
  /** How long after its fence an attempt counts as ended. */
  readonly fenceMs: number;
  readonly leaseMs: number;
  /** Resolves when the session is over. */
  readonly sessionOver: Promise<unknown>;
  /** For stages that name none. */
  readonly image?: string | undefined;
  /** Of the guards; absent: the stage's own. */
  readonly guardImage?: string | undefined;
  /** Of one stage, where the pipeline does not say. */
  readonly limits?: PodLimits | undefined;
  /** Of what one stage has left, on the disk of the owner. Default 1 GiB. */
  readonly leavingBytesMax?: number | undefined;
  /** A Pod whose stage has not begun by then is given up. */
  readonly setupMs: number;
  /** Whether the cluster keeps the network policies that our labels ask for. */
  readonly hasNetworkPolicies: boolean;
  readonly warn: (error: unknown, message: string) => void;
}

const GRACE_MS = 10_000;
const LEAVING_BYTES_MAX = 1024 ** 3;
const SWEEP_MS = 60_000;
/** What shells answer for what they found and could not execute. */
const UNSTARTABLE_CODE = 126;

/** Where the output of a stage goes, and what is kept of it. */
interface Kept {
  readonly sink: OutputSink;
  readonly record: StageRecord | undefined;
  readonly past: PodPast | undefined;
}

export class KubernetesExecutor implements Executor {
  readonly kind = 'kubernetes';
  readonly filesStayInside = true;
  readonly isIsolated = true;
  readonly #options: KubernetesExecutorOptions;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #holding: Holding;
  readonly #running = new Set<StartingStage>();
  readonly #removals = new Set<Promise<void>>();
  /** The names of Pods that are looked after, or being deleted. */
  readonly #held = new Set<string>();
  readonly #sweeping: NodeJS.Timeout;
  readonly #orphans: OrphanSweep;
  #isOver = false;
  #closing: Promise<void> | null = null;

  constructor(options: KubernetesExecutorOptions) {
    this.#options = options;
    const { cluster, runnerId, fence, fenceMs, warn } = options;
    this.#labels = labelsOfSession(runnerId, randomUUID());
    this.#holding = {
      cluster,
      // Not of the session alone: it may have taken up what an earlier one has begun.
      watch: new PodWatch({ cluster, selector: selectorOfRunner(runnerId), warn }),
      fence: () => (this.#isOver ? 0 : fence()),
      fenceMs,
      leavingBytesMax: options.leavingBytesMax ?? LEAVING_BYTES_MAX,
      isOver: () => this.#isOver,
      warn,
    };
    void options.sessionOver.then(() => this.#abandon());
    this.#orphans = new OrphanSweep(cluster, (name) => this.#held.has(name));
    this.#sweeping = setInterval(() => void this.#sweep(), SWEEP_MS);
    this.#sweeping.unref();
  }

  start(spec: StageSpec, sink: OutputSink, record?: StageRecord): StageProcess {
    return this.#look(spec, { sink, record, past: undefined });
  }

  resume(spec: StageSpec, sink: OutputSink, record: StageRecord, notes: StageNotes): StageProcess {
    return this.#look(spec, { sink, record, past: pastOf(notes) ?? undefined });
  }

  hasBegun(notes: StageNotes): boolean {
    return pastOf(notes)?.begunAt !== undefined;
  }

  async discard(notes: StageNotes): Promise<void> {
    const past = pastOf(notes);
    const { cluster, runnerId, leaseMs, warn } = this.#options;
    if (past === null) return;
    this.#held.add(past.name);
    try {
      await endEarlierPod({ cluster, runnerId, leaseMs, warn }, past.name);
    } catch (error) {
      warn(error, `the Pod ${past.name} of an earlier process could not be ended; it ends by itself`);
    } finally {
      this.#held.delete(past.name);
    }
  }

  #look(spec: StageSpec, kept: Kept): StageProcess {
    const stage = new StartingStage(spec, (onPod) => this.#run(spec, kept, onPod));
    if (this.#isOver) stage.abandon();
    this.#running.add(stage);
    void stage.ended.then(() => this.#running.delete(stage));
    return stage;
  }

  prewarm(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#abandon();
    clearInterval(this.#sweeping);
    await Promise.all([...this.#running].map((stage) => stage.ended));
    await Promise.all(this.#removals);
    await this.#holding.watch.close();
  }

  async #sweep(): Promise<void> {
    try {
      await this.#orphans.sweep(bootMs());
    } catch (error) {
      this.#options.warn(error, 'Pods that nobody looks after could not be swept; it is tried again');
    }
  }

  /** KUBERNETES-1. */
  #abandon(): void {
    this.#isOver = true;
    for (const stage of this.#running) stage.abandon();
  }

  async #run(spec: StageSpec, { sink, record, past }: Kept, onPod: (pod: StagePod) => void): Promise<StageExit> {
    const { image: defaultImage, guardImage, limits, setupMs, leaseMs, hasNetworkPolicies } = this.#options;
    const refuse = async (why: string): Promise<StageExit> => {
      await sink.write('system', Buffer.from(`the stage cannot start: ${why}\n`));
      return { kind: 'exit', code: UNSTARTABLE_CODE };
    };
    if (this.#isOver) return { kind: 'lost', cause: 'the executor is closed' };
    const image: StageImage | undefined =
      spec.place?.image ?? (defaultImage === undefined ? undefined : { name: defaultImage });
    if (image === undefined)
      return refuse('it names no image, and the runner has none for such stages (SERVICE_K8S_IMAGE)');
    const network = spec.place?.network ?? 'open';
    if (network !== 'open' && !hasNetworkPolicies)
      return refuse(
        `it asks for network '${network}', which its cluster is not known to keep (SERVICE_K8S_NETWORK_POLICIES)`,
      );
    const refusal = refusalOf(imagesOf(spec, image));
    if (refusal !== undefined) return refuse(refusal);
    const empty: string[] = [];
    const full: Brought[] = [];
    // What a stage has begun with is in its Pod.
    const isNew = past?.begunAt === undefined;
    const folders = isNew ? (spec.folders ?? []) : [];
    const laidOver = isNew ? await notEmpty(spec.laidOver) : [];
    for (const folder of folders) {
      const contents = contentsOf(folder, spec.contents);
      const found = await emptyFoldersOf(folder, contents, outputFileOf(spec));
      if (found === null) full.push({ from: folder, to: folder, contents });
      else empty.push(...found);
    }
    const renewed = new RenewedFiles(spec.renewedFiles);
    let job;
    try {
      job = renderPodJob({ ...spec, env: { ...spec.env, ...renewed.env } }, empty);
    } catch (error) {
      return refuse(error instanceof Error ? error.message : String(error));
    }
    const plan = {
      name: past?.name ?? `penstock-${randomUUID()}`,
      labels: { ...this.#labels, 'penstock/key': labelOf(spec.helperKey) },
      spec,
      image,
      graceMs: spec.graceMs ?? GRACE_MS,
      setupMs,
      leaseMs,
      guardImage,
      limits,
    };
    this.#held.add(plan.name);
    const pod = new StagePod({ plan, job, renewed, folders: full, laidOver, sink, record, past }, this.#holding);
    onPod(pod);
    const exit = await pod.ended;
    const removal = pod.removed.finally(() => {
      this.#held.delete(plan.name);
      this.#removals.delete(removal);
    });
    this.#removals.add(removal);
    return exit;
  }
}

async function notEmpty(brought: readonly Brought[] = []): Promise<Brought[]> {
  const counts = await Promise.all(brought.map(async ({ from }) => (await readdir(from).catch(() => [])).length));
  return brought.filter((_each, at) => (counts[at] ?? 0) > 0);
}

/** A stage before it has a Pod, and with it. */
class StartingStage implements StageProcess {
  readonly ended: Promise<StageExit>;
  #pod: StagePod | null = null;
  #stopped: StopReason | null = null;
  #isAbandoned = false;
  readonly #faults: ReadonlyMap<string, string>;
  readonly #replaced = new Map<string, string>();

  constructor({ leavings }: StageSpec, run: (onPod: (pod: StagePod) => void) => Promise<StageExit>) {
    this.#faults = faultsOfAll(leavings, 'it never ran');
    this.ended = run((pod) => {
      this.#pod = pod;
      for (const [variable, content] of this.#replaced) pod.replaceFile(variable, content);
      if (this.#stopped !== null) pod.stop(this.#stopped);
      if (this.#isAbandoned) pod.abandon();
    }).catch((error: unknown) => ({ kind: 'lost', cause: error instanceof Error ? error.message : String(error) }));
  }

  get startedAtMs(): number | undefined {
    return this.#pod?.startedAtMs;
  }

  get leavingFaults(): ReadonlyMap<string, string> {
    return this.#pod?.leavingFaults ?? this.#faults;
  }

  replaceFile(variable: string, content: string): void {
    if (this.#pod === null) this.#replaced.set(variable, content);
    else this.#pod.replaceFile(variable, content);
  }

  stop(reason: StopReason): void {
    this.#stopped ??= reason;
    this.#pod?.stop(reason);
  }

  abandon(): void {
    this.#isAbandoned = true;
    this.#pod?.abandon();
  }
}
