/** Where stages run, what they are given there and what they may take. */
import { boolean, choice, duration, integer, lentVariables, list, text, uidRange, type Kind } from '../kinds.ts';
import { DAY_MS, optional, SECOND_MS, variable } from './declared.ts';

export const stageVariables = {
  stageUids: variable({
    name: 'SERVICE_STAGE_UIDS',
    kind: uidRange(),
    default: { first: 200_000, last: 265_535 },
    defaultText: '`200000-265535`',
    services: ['serve', 'runner'],
    meaning:
      'Where the runner is root, stages of each key run as a user of their own from this range, which nothing else on the machine may use. `off`: as the runner itself.',
  }),
  stageDeny: variable({
    name: 'SERVICE_STAGE_DENY',
    kind: list(text('host')),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning:
      'Hosts and addresses that no stage in a sandbox is to reach, beside the broker and the store that the process itself is connected to.',
  }),
  stagePaths: variable({
    name: 'SERVICE_STAGE_PATHS',
    kind: list(text('path')),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning:
      'Folders that stages in a sandbox see, and cannot write to, beside `/usr`, `/etc`, `/opt` and the like: where tools lie elsewhere.',
  }),
  stageEnv: variable({
    name: 'SERVICE_STAGE_ENV',
    kind: lentVariables(),
    default: [],
    defaultText: 'none',
    secret: true,
    services: ['serve', 'runner'],
    meaning:
      "Variables of this process's own environment that every stage here is given, such as `HTTPS_PROXY,NO_PROXY`. Stages of all tenants can read them; what a pipeline says in `env` stands above.",
  }),
  stageMemoryBytes: optional({
    name: 'SERVICE_STAGE_MEMORY_BYTES',
    kind: integer({ min: 16 * 1024 ** 2, max: 2 ** 50 }),
    defaultText: "nine tenths of the machine's memory, divided by its slots",
    services: ['serve', 'runner'],
    meaning:
      'What one stage may take of the memory; beyond it, it is killed (`oom`). Its `resources` may ask for less.',
  }),
  stageProcesses: optional({
    name: 'SERVICE_STAGE_PROCESSES',
    kind: integer({ min: 16, max: 4_194_304 }),
    defaultText: '4096',
    services: ['serve', 'runner'],
    meaning: 'How many processes and threads one stage may have at a time; it is refused more.',
  }),
  stageDiskBytes: optional({
    name: 'SERVICE_STAGE_DISK_BYTES',
    kind: integer({ min: 1024 ** 2, max: 2 ** 50 }),
    defaultText: 'nine tenths of what is free at the start, divided by the slots',
    services: ['serve', 'runner'],
    meaning: "What the files of a stage's run may take of the disk, and one file of it; beyond it the stage is killed.",
  }),
  allowUnisolated: variable({
    name: 'SERVICE_ALLOW_UNISOLATED',
    kind: boolean(),
    default: false,
    services: ['serve', 'runner'],
    meaning:
      'Starts in production mode also where the machine gives no namespaces, so that stages see its other processes and can outlive their end.',
  }),
  executors: optional({
    name: 'SERVICE_EXECUTORS',
    kind: list(choice('process', 'sandbox', 'container', 'kubernetes'), 4),
    defaultText: 'what the runner finds',
    services: ['serve', 'runner'],
    meaning:
      'What stages may run in here, the most preferred first: a stage runs in the first that gives what it asks for. One that is named and not to be had is a start-up error.',
  }),
  untrustedIsolation: optional({
    name: 'SERVICE_UNTRUSTED_ISOLATION',
    kind: choice('none', 'sandbox', 'container'),
    defaultText: '`none` in development mode, else `sandbox`',
    services: ['serve', 'runner'],
    meaning:
      'The least isolation of a stage whose run is not trusted; there it has no way to link-local, private or own addresses of the machine. A runner that has none of it does not take such stages: they wait, and a warning says so.',
  }),
  k8sNamespace: optional({
    name: 'SERVICE_K8S_NAMESPACE',
    kind: text(),
    defaultText: 'none: no stage runs in a Pod',
    services: ['serve', 'runner'],
    meaning: 'Where stages run as Pods, with `kubernetes` among the executors: a namespace for nothing else.',
  }),
  k8sKubeconfig: optional({
    name: 'SERVICE_K8S_KUBECONFIG',
    kind: text(),
    defaultText: 'as `kubectl` finds it; in a Pod its service account',
    services: ['serve', 'runner', 'scaler'],
    meaning: 'The file that says where the cluster is and who we are there.',
  }),
  k8sImage: optional({
    name: 'SERVICE_K8S_IMAGE',
    kind: text(),
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning: 'The image of stages in Pods that name none; without it they fail there.',
  }),
  k8sGuardImage: optional({
    name: 'SERVICE_K8S_GUARD_IMAGE',
    kind: text(),
    defaultText: "the stage's own",
    services: ['serve', 'runner'],
    meaning:
      'The image of the guards of Pods, whose `sh` is to be linked statically (as in `busybox`): with it an image that was made against its guard reaches nothing either.',
  }),
  k8sSetupTimeout: variable({
    name: 'SERVICE_K8S_SETUP_TIMEOUT',
    kind: duration({ minMs: SECOND_MS, maxMs: DAY_MS }),
    default: 5 * 60 * SECOND_MS,
    defaultText: '`5m`',
    services: ['serve', 'runner'],
    meaning: 'A Pod that has not been scheduled, pulled and started within this is given up, and its stage with it.',
  }),
  k8sNetworkPolicies: variable({
    name: 'SERVICE_K8S_NETWORK_POLICIES',
    kind: boolean(),
    default: false,
    services: ['serve', 'runner'],
    meaning:
      'Says that the cluster enforces the network policies of `deploy/k8s/executor.yaml`. Without it a stage that asks for less than an open network is refused there.',
  }),
  drain: variable({
    name: 'SERVICE_DRAIN',
    kind: duration({ minMs: 0, maxMs: DAY_MS }),
    default: 10 * 60 * SECOND_MS,
    defaultText: '`10m`',
    services: ['serve', 'runner'],
    meaning:
      'Running stages get so long when the process is told to stop, and a runner on its own gives it to open runs that have their working folder there; what is not done by then counts as lost.',
  }),
  slots: optional({
    name: 'SERVICE_SLOTS',
    kind: integer({ min: 1, max: 1000 }),
    defaultText: 'as many as have 2 GiB of the memory each, from one to eight for each processor, at least 2',
    services: ['serve', 'runner'],
    meaning:
      'How many stages a runner executes at once; where `SERVICE_STAGE_MEMORY_BYTES` is set, the memory is divided by that. A warning says when all have been taken for five minutes while stages wait.',
  }),
  runnerLabels: variable({
    name: 'SERVICE_RUNNER_LABELS',
    kind: list(label()),
    default: [],
    defaultText: 'none',
    services: ['serve', 'runner'],
    meaning: 'What a runner offers to stages that ask by `runs_on`.',
  }),
  logBytesMax: variable({
    name: 'SERVICE_LOG_BYTES_MAX',
    kind: integer({ min: 64 * 1024, max: 10 * 1024 ** 3 }),
    default: 16 * 1024 * 1024,
    services: ['serve', 'scheduler'],
    meaning:
      'Bytes of output kept for one attempt of a stage; of a longer one its beginning and its end, with a marker between them.',
  }),
} as const;

function label(): Kind<string> {
  return {
    form: 'label',
    parse: (value) =>
      /^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,62}$/.test(value)
        ? { value }
        : { problem: 'is to be letters, digits and . _ : / -, at most 63' },
  };
}
