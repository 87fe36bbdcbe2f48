/** How podman and docker are asked for a container. */
import type { ContainerRequest, EngineDialect } from './engine.ts';

/** No stage gains a right that it did not start with. */
const LOOPBACK = '127.0.0.1';
const CPU_PERIOD_US = 100_000;

export const podmanDialect: EngineDialect = {
  createPath: () => '/v4.0.0/libpod/containers/create',
  // For each it asks a library, which is not for several threads, which numbers its user has: two at a time, and one may hear that there are none.
  isMadeAlone: ({ isOwnerInside }) => isOwnerInside !== undefined,
  initPath: (name) => `/v4.0.0/libpod/containers/${name}/init`,
  createBody: (request: ContainerRequest) => {
    const { name, image, labels, argv, env, user, mounts, network, hosts, capabilities, limits, seccompProfile } =
      request;
    const { isOwnerInside: inside } = request;
    const [file, ...rest] = argv;
    return {
      name,
      image,
      labels,
      entrypoint: [file],
      command: rest,
      env,
      ...(user === undefined ? {} : { user }),
      ...(inside === undefined ? {} : { userns: { nsmode: 'keep-id', value: `uid=${inside.uid},gid=${inside.gid}` } }),
      mounts: mounts.map(({ source, target, readOnly }) => ({
        type: 'bind',
        source,
        destination: target,
        options: [readOnly ? 'ro' : 'rw', 'nosuid', 'nodev', 'rprivate', 'rbind'],
      })),
      netns: podmanNetwork(network),
      hostadd: hosts.map((host) => `${host}:${LOOPBACK}`),
      cap_drop: ['all'],
      cap_add: capabilities,
      no_new_privileges: true,
      ...(seccompProfile === undefined ? {} : { seccomp_profile_path: seccompProfile }),
      log_configuration: { driver: 'none' },
      r_limits: [
        { type: 'nofile', soft: limits.openFilesMax, hard: limits.openFilesMax },
        { type: 'nproc', soft: limits.userProcessesMax, hard: limits.userProcessesMax },
        ...(limits.fileBytesMax === undefined
          ? []
          : [{ type: 'fsize', soft: limits.fileBytesMax, hard: limits.fileBytesMax }]),
      ],
      resource_limits: {
        pids: { limit: limits.processesMax },
        ...(limits.cpu === undefined
          ? {}
          : { cpu: { period: CPU_PERIOD_US, quota: Math.round(limits.cpu * CPU_PERIOD_US) } }),
        ...(limits.memoryBytes === undefined
          ? {}
          : { memory: { limit: limits.memoryBytes, swap: limits.memoryBytes } }),
      },
    };
  },
};

function podmanNetwork(network: ContainerRequest['network']): unknown {
  if (network.kind === 'of') return { nsmode: 'container', value: network.container };
  // Empty: what the engine gives a container by itself, a bridge or a user's own stack.
  return network.kind === 'none' ? { nsmode: 'none' } : {};
}

export const dockerDialect: EngineDialect = {
  createPath: (name) => `/v1.40/containers/create?name=${name}`,
  createBody: (request: ContainerRequest) => {
    const { image, labels, argv, env, user, mounts, network, hosts, capabilities, limits } = request;
    const [file, ...rest] = argv;
    return {
      Image: image,
      Labels: labels,
      Entrypoint: [file],
      Cmd: rest,
      Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
      ...(user === undefined ? {} : { User: user }),
      HostConfig: {
        Mounts: mounts.map(({ source, target, readOnly }) => ({
          Type: 'bind',
          Source: source,
          Target: target,
          ReadOnly: readOnly,
          BindOptions: { Propagation: 'rprivate' },
        })),
        NetworkMode:
          network.kind === 'of' ? `container:${network.container}` : network.kind === 'none' ? 'none' : 'bridge',
        ...(hosts.length === 0 ? {} : { ExtraHosts: hosts.map((host) => `${host}:${LOOPBACK}`) }),
        CapDrop: ['ALL'],
        CapAdd: capabilities,
        SecurityOpt: ['no-new-privileges'],
        LogConfig: { Type: 'none' },
        PidsLimit: limits.processesMax,
        Ulimits: [
          { Name: 'nofile', Soft: limits.openFilesMax, Hard: limits.openFilesMax },
          { Name: 'nproc', Soft: limits.userProcessesMax, Hard: limits.userProcessesMax },
          ...(limits.fileBytesMax === undefined
            ? []
            : [{ Name: 'fsize', Soft: limits.fileBytesMax, Hard: limits.fileBytesMax }]),
        ],
        ...(limits.cpu === undefined ? {} : { NanoCpus: Math.round(limits.cpu * 1e9) }),
        ...(limits.memoryBytes === undefined ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
      },
    };
  },
};
