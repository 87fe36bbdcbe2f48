/**
 * A stage as a Pod. Nothing that the stage says stands in it but its image, its limits and its folders: script and environment go by
 * the line, and the environment of its services by a Secret.
 */
import type { V1Container, V1Pod, V1Secret } from '@kubernetes/client-node';
import type { StageImage, StageService, StageSpec } from '@penstock/executor';
import { LEASE_ANNOTATION, POD_LABEL } from './labels.ts';
import { guardScript, lineScript, starterScript } from './scripts.ts';

export const STAGE_CONTAINER = 'stage';
/** Its guard's: what runs here no stage can reach. */
export const GUARD_CONTAINER = 'guard';
export const GUARD_FOLDER = '/penstock';
/** Blocks of output, 64 KiB each and for each stream, that wait in the Pod to be taken. */
const WINDOW_BLOCKS = 32;
/** The folder of the guard is in memory: both windows, the job and a little more. */
const GUARD_FOLDER_SIZE = '16Mi';
/** Both windows are in memory of the guard's, its job and its shells. */
const GUARD_RESOURCES = { requests: { cpu: '5m', memory: '16Mi' }, limits: { memory: '128Mi' } };
const MEMORY_BYTES = 4 * 1024 ** 3;
const DISK_BYTES = 20 * 1024 ** 3;
/** Where neither image nor pipeline says otherwise; no Pod of ours runs as root. */
const USER = 1000;
/** The guard is another user than everybody else of its Pod: this, or the next below it that nobody is. */
const GUARD_USER_MAX = 65_533;
const READY_MS = 60_000;
/** For what a stage has left to be brought out of its Pod. */
const LEAVING_MS = 30 * 60_000;
const ANNOTATION_CHARACTERS_MAX = 1_000;

/** Absent: as below. Processes are bounded by the node alone (the kubelet's `podPidsLimit`): no Pod can ask for that. */
export interface PodLimits {
  /** Of a stage whose pipeline names none. */
  readonly memoryBytes?: number | undefined;
  /** Of its folders, and of what it writes beside them. */
  readonly diskBytes?: number | undefined;
}

export interface PodPlan {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: StageSpec;
  readonly image: StageImage;
  readonly graceMs: number;
  /** A Pod that does not run by then is given up, by its runner and by itself. */
  readonly setupMs: number;
  /** Of its runner. */
  readonly leaseMs: number;
  /** Of the guard; absent: the stage's. */
  readonly guardImage?: string | undefined;
  readonly limits?: PodLimits | undefined;
}

/** What a Pod of ours can be asked for; a sentence where it cannot. */
export function refusalOf(images: readonly StageImage[]): string | undefined {
  const named = images.find(({ user }) => user !== undefined && !/^\d{1,9}(:\d{1,9})?$/.test(user));
  if (named !== undefined)
    return `the image ${named.name} asks for the user '${named.user}': in Kubernetes a user is a number`;
  const root = images.find(({ user }) => user !== undefined && /^0+(:|$)/.test(user));
  if (root !== undefined) return `the image ${root.name} asks for root, which no stage is given here`;
  return undefined;
}

export function renderPod(plan: PodPlan): V1Pod {
  const { name, labels, spec, image, graceMs, setupMs, leaseMs, limits = {} } = plan;
  const { services = [], resources, network } = spec.place ?? {};
  const folders = spec.folders ?? [];
  const [user, group] = numbersOf(image);
  const secrets = secretNames(name, spec, image);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: { ...labels, 'penstock/network': network ?? 'open' },
      annotations: { ...annotationsOf(spec), [LEASE_ANNOTATION]: String(leaseMs) },
    },
    spec: {
      restartPolicy: 'Never',
      // It counts from the node's start on; services may take theirs before the stage begins.
      activeDeadlineSeconds: Math.ceil((setupMs + spec.timeoutMs + graceMs + leavingMsOf(spec)) / 1000) + 60,
      terminationGracePeriodSeconds: Math.ceil(graceMs / 1000) + 5,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: user,
        runAsGroup: group,
        fsGroup: group,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      ...(services.length === 0
        ? {}
        : { hostAliases: [{ ip: '127.0.0.1', hostnames: services.map((each) => each.name) }] }),
      ...(secrets.pull === undefined ? {} : { imagePullSecrets: [{ name: secrets.pull }] }),
      initContainers: services.map((service, at) => renderService(service, at, secrets.services)),
      // In this order: the second is not started before the hook of the first has ended.
      containers: [
        renderGuard(plan),
        {
          name: STAGE_CONTAINER,
          image: image.name,
          imagePullPolicy: pullPolicyOf(image),
          command: [`${GUARD_FOLDER}/sh`, '-c', asIs(starterScript), 'penstock-starter'],
          env: [
            { name: 'PENSTOCK_OUTPUT_FILE', value: outputFileOf(spec) ?? '' },
            { name: 'PENSTOCK_MASK_FILE', value: maskFileOf(spec) ?? '' },
            { name: 'PENSTOCK_STAGES_FILE', value: stagesFileOf(spec) ?? '' },
          ],
          workingDir: '/',
          resources: resourcesOf(resources, limits),
          securityContext: CONFINED,
          volumeMounts: [
            { name: 'guard', mountPath: GUARD_FOLDER, readOnly: true },
            ...folders.map((mountPath, index) => ({ name: `folder-${index}`, mountPath })),
          ],
        },
      ],
      volumes: [
        { name: 'guard', emptyDir: { medium: 'Memory', sizeLimit: GUARD_FOLDER_SIZE } },
        ...folders.map((_path, index) => ({
          name: `folder-${index}`,
          emptyDir: { sizeLimit: String(limits.diskBytes ?? DISK_BYTES) },
        })),
      ],
    },
  };
}

/** What Pods are made with that is not to stand in them. */
export function renderSecrets({ name, labels, spec, image }: PodPlan): V1Secret[] {
  const names = secretNames(name, spec, image);
  const { services = [] } = spec.place ?? {};
  const own = { ...labels, [POD_LABEL]: name };
  const secrets: V1Secret[] = [];
  if (names.services !== undefined)
    secrets.push({
      metadata: { name: names.services, labels: own },
      stringData: Object.fromEntries(
        services.flatMap((service, at) =>
          Object.values(service.env).map((value, index) => [`${at}-${index}`, value] as const),
        ),
      ),
    });
  if (names.pull !== undefined) {
    const auths = Object.fromEntries(
      imagesOf(spec, image).flatMap(({ name: reference, auth }) =>
        auth === undefined ? [] : [[repositoryOf(reference), { username: auth.username, password: auth.password }]],
      ),
    );
    secrets.push({
      metadata: { name: names.pull, labels: own },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
    });
  }
  return secrets;
}

/** How long that may take. */
export function leavingMsOf({ leavings }: StageSpec): number {
  return leavings === undefined || leavings.length === 0 ? 0 : LEAVING_MS;
}

export function imagesOf(spec: StageSpec, image: StageImage): StageImage[] {
  return [image, ...(spec.place?.services ?? []).map((service) => service.image)];
}

/** The file of a stage's outputs comes back to its owner where it lies in a folder that the stage was given. */
export function outputFileOf(spec: Pick<StageSpec, 'env' | 'folders'>): string | undefined {
  return fileOf(spec, 'SERVICE_OUTPUT');
}

/** And so do the stages that it adds to its run. */
export function stagesFileOf(spec: Pick<StageSpec, 'env' | 'folders'>): string | undefined {
  return fileOf(spec, 'SERVICE_STAGES');
}

/** And so does what the stage wants to be masked. */
export function maskFileOf(spec: Pick<StageSpec, 'env' | 'folders'>): string | undefined {
  return fileOf(spec, 'SERVICE_MASK');
}

function fileOf({ env, folders = [] }: Pick<StageSpec, 'env' | 'folders'>, variable: string): string | undefined {
  const file = env[variable];
  return file !== undefined && folders.some((folder) => file.startsWith(`${folder}/`)) ? file : undefined;
}

/**
 * What the stage's container begins with is the guard's own shell, from the only folder that they share: it can be executed there, and
 * not read. bash and the shell of busybox can wait for a time; where there is neither, the guard makes do.
 */
const BEGIN_GUARD = [
  `cat /proc/$$/exe >${GUARD_FOLDER}/sh.new && chmod 111 ${GUARD_FOLDER}/sh.new && mv ${GUARD_FOLDER}/sh.new ${GUARD_FOLDER}/sh || exit 70`,
  'if command -v bash >/dev/null 2>&1; then exec bash --norc -c "$0" penstock-guard "$1"; fi',
  'exec sh -c "$0" penstock-guard "$1"',
].join('\n');

const CONFINED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

function renderGuard({ spec, image, guardImage, graceMs, setupMs }: PodPlan): V1Container {
  const taken = new Set(imagesOf(spec, image).map((each) => numbersOf(each)[0]));
  let user = GUARD_USER_MAX;
  while (taken.has(user)) user -= 1;
  return {
    name: GUARD_CONTAINER,
    image: guardImage ?? image.name,
    imagePullPolicy: guardImage === undefined ? pullPolicyOf(image) : 'IfNotPresent',
    command: ['sh', '-c', ...[BEGIN_GUARD, guardScript, lineScript].map(asIs)],
    env: [
      { name: 'PENSTOCK_POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
      { name: 'PENSTOCK_SETUP_SECS', value: String(Math.ceil(setupMs / 1000)) },
      { name: 'PENSTOCK_TERM_MS', value: String(graceMs) },
      { name: 'PENSTOCK_WINDOW', value: String(WINDOW_BLOCKS) },
      { name: 'PENSTOCK_MASK_FILE', value: maskFileOf(spec) ?? '' },
    ],
    workingDir: '/',
    resources: GUARD_RESOURCES,
    securityContext: { ...CONFINED, readOnlyRootFilesystem: true, runAsUser: user, runAsGroup: user },
    lifecycle: {
      postStart: { exec: { command: ['sh', '-c', `until [ -e ${GUARD_FOLDER}/ready ]; do sleep 0.02; done`] } },
    },
    volumeMounts: [
      { name: 'guard', mountPath: GUARD_FOLDER },
      // For the file of the masks.
      ...(spec.folders ?? []).map((mountPath, index) => ({ name: `folder-${index}`, mountPath, readOnly: true })),
    ],
  };
}

/** A cluster reads `$$` and `$(NAME)` in a command as something of its own. */
function asIs(word: string): string {
  return word.replaceAll('$', '$$$$');
}

function pullPolicyOf({ pull }: StageImage): string {
  return pull === 'always' ? 'Always' : 'IfNotPresent';
}

function renderService(service: StageService, at: number, secret: string | undefined): V1Container {
  const { name, image, env, ready, readyTimeoutMs = READY_MS } = service;
  const [user, group] = numbersOf(image);
  return {
    name: `service-${name}`,
    image: image.name,
    imagePullPolicy: pullPolicyOf(image),
    // What makes it a sidecar: it goes on beside the stage, and ends after it.
    restartPolicy: 'Always',
    ...(image.entrypoint === undefined ? {} : { command: image.entrypoint.map(asIs) }),
    env: Object.keys(env).map((variable, index) => ({
      name: variable,
      valueFrom: { secretKeyRef: { name: secret ?? '', key: `${at}-${index}` } },
    })),
    securityContext: { ...CONFINED, runAsUser: user, runAsGroup: group },
    ...(ready === undefined
      ? {}
      : {
          startupProbe: {
            exec: { command: ['sh', '-c', ready] },
            periodSeconds: 1,
            timeoutSeconds: 5,
            // Given up by the runner: here it must not be the first.
            failureThreshold: Math.ceil(readyTimeoutMs / 1000) + 60,
          },
        }),
  };
}

function numbersOf({ user }: StageImage): [user: number, group: number] {
  const [uid = USER, gid = uid] = (user ?? '').split(':').filter(Boolean).map(Number);
  return [uid, gid];
}

/** What is asked for is also reserved; bounds that nobody has asked for reserve nothing. */
function resourcesOf(
  asked: NonNullable<StageSpec['place']>['resources'],
  { memoryBytes = MEMORY_BYTES, diskBytes = DISK_BYTES }: PodLimits,
): V1Container['resources'] & object {
  const limits: Record<string, string> = { 'ephemeral-storage': String(diskBytes) };
  const requests: Record<string, string> = { 'ephemeral-storage': '0' };
  if (asked?.cpu !== undefined) limits['cpu'] = `${Math.max(1, Math.round(asked.cpu * 1000))}m`;
  limits['memory'] = String(asked?.memoryBytes ?? memoryBytes);
  if (asked?.memoryBytes === undefined) requests['memory'] = '0';
  return { limits, requests };
}

function secretNames(
  pod: string,
  spec: StageSpec,
  image: StageImage,
): { readonly services: string | undefined; readonly pull: string | undefined } {
  const hasEnv = (spec.place?.services ?? []).some(({ env }) => Object.keys(env).length > 0);
  const hasAuth = imagesOf(spec, image).some(({ auth }) => auth !== undefined);
  return { services: hasEnv ? `${pod}-services` : undefined, pull: hasAuth ? `${pod}-pull` : undefined };
}

/** The name without tag and digest: credentials of one repository are offered to no other. */
function repositoryOf(reference: string): string {
  const name = reference.split('@')[0] ?? reference;
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? name.slice(0, colon) : name;
}

/** For people who look at the cluster. */
function annotationsOf({ env }: StageSpec): Record<string, string> {
  const known = {
    'penstock/run': env['PENSTOCK_RUN_ID'],
    'penstock/pipeline': env['PENSTOCK_PIPELINE'],
    'penstock/stage': env['PENSTOCK_STAGE'],
    'penstock/attempt': env['PENSTOCK_ATTEMPT'],
  };
  return Object.fromEntries(
    Object.entries(known).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value.slice(0, ANNOTATION_CHARACTERS_MAX)]],
    ),
  );
}
