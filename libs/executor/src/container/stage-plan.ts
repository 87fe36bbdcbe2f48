/** What a stage's spec means for its containers: whom they run as, what they see, and what this machine cannot give. */
import { existsSync, readFileSync } from 'node:fs';
import { UnstartableStage } from '../contract/errors.ts';
import type { StageImage, StageService, StageSpec, StageUser } from '../contract/port.ts';
import type { Holders } from './confined.ts';
import { serviceLabels } from './ownership.ts';
import type { Connection } from './connection.ts';
import { CONTROL_TARGET } from './control.ts';
import type { StageLimits } from '../limits/stage-limits.ts';
import type { ContainerLimits, ContainerRequest } from './engine.ts';
import type { ServiceParts } from './services.ts';

export interface StageParts {
  readonly connect: () => Promise<Connection>;
  readonly holders: Holders;
  /** Of the stage's container. */
  readonly name: string;
  /** Holds what containers share with their owner; nobody else can enter it. */
  readonly folder: string;
  readonly labels: Readonly<Record<string, string>>;
  /** For stages that name no image. */
  readonly defaultImage: string | undefined;
  /** The engine gives the container's users numbers of its own, so that root in it is nobody's root. */
  readonly mapsUsers: boolean;
  /** Names and addresses that no stage is to reach. */
  readonly deniedHosts: readonly string[];
  /** What a stage may take; absent: what it can get. */
  readonly stageLimits: StageLimits | undefined;
  /** The words by which a command runs among the users that the engine has for its containers; absent: there are no such. */
  readonly asEngine: readonly string[] | undefined;
  /** A file; absent: the engine's own. */
  readonly seccompProfile: string | undefined;
  readonly boot: { readonly stage: string; readonly service: string };
}

export interface StagePlan {
  readonly image: StageImage;
  readonly services: readonly StageService[];
  /** Whom what is shared with the container belongs to, where that is not the owner. */
  readonly owner: StageUser | undefined;
  request(imageId: string, controlFolder: string): ContainerRequest;
  serviceParts(live: Pick<ServiceParts, 'engine' | 'images' | 'sink' | 'signal' | 'remark'>): ServiceParts;
}

/** There in version 2 alone: the first gives limits to root only. */
const CGROUPS_V2 = '/sys/fs/cgroup/cgroup.controllers';
/** Of one stage, all of its processes. */
const PROCESSES_MAX = 4_096;
/** Of all stages of one user; podman itself does not keep more than some ten thousand. */
const USER_PROCESSES_MAX = 16_384;
const OPEN_FILES_MAX = 65_536;
/** Ranges of numbers are usually 65,536 long, and one of them is the owner's own. */
const MAPPED_MAX = 65_000;
const ROOT_INSIDE = /^(root|0+)(:(root|0+))?$/;
/** What images of servers do before they become their own user; inside the engine's numbers of users they reach nothing else. */
const SERVICE_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID'];

/** Throws UnstartableStage where this machine cannot give what the stage asks for. */
export function planStage(spec: StageSpec, parts: StageParts): StagePlan {
  const { place = {}, user } = spec;
  const { name, labels, mapsUsers, boot, folder, holders, seccompProfile } = parts;
  const image = place.image ?? (parts.defaultImage === undefined ? undefined : { name: parts.defaultImage });
  if (image === undefined) throw new UnstartableStage('a container needs an image, and the stage names none');
  const runsAs = userOf(image, user, mapsUsers);
  if (place.resources !== undefined && mapsUsers && !existsSync(CGROUPS_V2))
    throw new UnstartableStage(
      '`resources` of a container need control groups of version 2 where podman is not root’s',
    );
  const services = place.services ?? [];
  const limits = limitsOf(place.resources, parts.stageLimits);
  return {
    image,
    services,
    owner: user,
    request: (imageId, controlFolder) => ({
      name,
      image: imageId,
      labels,
      argv: [...(image.entrypoint ?? []), 'sh', '-c', boot.stage, CONTROL_TARGET],
      env: {},
      user: runsAs,
      isOwnerInside: mapsUsers ? mappedUserOf(image).isOwnerInside : undefined,
      mounts: [
        { source: controlFolder, target: CONTROL_TARGET, readOnly: true },
        ...(spec.folders ?? []).map((path) => ({ source: path, target: path, readOnly: false })),
      ],
      network: { kind: place.network === 'none' ? 'none' : 'own' },
      hosts: services.map((service) => service.name),
      capabilities: [],
      limits,
      seccompProfile,
    }),
    serviceParts: (live) => ({
      ...live,
      holders,
      name,
      folder,
      spec,
      boot: boot.service,
      common: {
        labels: serviceLabels(labels),
        capabilities: mapsUsers ? SERVICE_CAPABILITIES : [],
        limits,
        seccompProfile,
      },
      user: mapsUsers ? undefined : runsAs,
    }),
  };
}

function userOf(image: StageImage, user: StageUser | undefined, mapsUsers: boolean): string | undefined {
  if (mapsUsers) return mappedUserOf(image).user;
  if (image.user !== undefined)
    throw new UnstartableStage(
      'the engine of this runner gives its containers no users of their own: leave out `user` of the image',
    );
  if (user !== undefined) return `${user.uid}:${user.gid}`;
  const uid = process.getuid?.() ?? 0;
  if (uid === 0)
    throw new UnstartableStage(
      'a container never runs as the root of its machine, and this stage has no user of its own (SERVICE_STAGE_UIDS)',
    );
  return `${uid}:${process.getgid?.() ?? 0}`;
}

/**
 * Without root podman gives the folders of a stage to its root inside, who is the runner's own user outside. Another number inside can
 * be that user in the place of root; whom a name means stands in the image, which nobody has looked into.
 */
function mappedUserOf({ name, user = '' }: StageImage): Pick<ContainerRequest, 'user' | 'isOwnerInside'> & object {
  if (user === '' || ROOT_INSIDE.test(user)) return { user: '0:0' };
  const [, uid, gid = uid] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(user) ?? [];
  if (uid === undefined || Number(uid) > MAPPED_MAX || Number(gid) > MAPPED_MAX)
    throw new UnstartableStage(
      `the image ${name} asks for the user '${user}': where podman is not root's, a user is a number up to ${MAPPED_MAX}`,
    );
  const numbers = { uid: Number(uid), gid: Number(gid) };
  return { user: `${numbers.uid}:${numbers.gid}`, isOwnerInside: numbers };
}

function limitsOf(
  resources: { readonly cpu?: number | undefined; readonly memoryBytes?: number | undefined } | undefined,
  stageLimits: StageLimits | undefined,
): ContainerLimits {
  return {
    cpu: resources?.cpu,
    memoryBytes: resources?.memoryBytes,
    processesMax: PROCESSES_MAX,
    openFilesMax: Math.min(OPEN_FILES_MAX, hardLimit('Max open files')),
    fileBytesMax:
      stageLimits === undefined ? undefined : Math.min(stageLimits.diskBytes, hardLimit('Max file size', Infinity)),
    userProcessesMax: Math.min(USER_PROCESSES_MAX, hardLimit('Max processes')),
  };
}

/** Of this process: no container may be given more where it is not quite root. */
function hardLimit(name: string, unlimited = OPEN_FILES_MAX): number {
  const line = readFileSync('/proc/self/limits', 'latin1')
    .split('\n')
    .find((text) => text.startsWith(name));
  const hard = Number(/\s(\d+|unlimited)\s+(\d+|unlimited)\s/.exec(line ?? '')?.[2]);
  return Number.isNaN(hard) ? unlimited : hard;
}
