import { statfsSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ControlGroups, findEngine, ProcessExecutor, whySandboxLacks } from '@penstock/executor';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { findingText, type Finding } from '../output/finding.ts';
import { CommandError, EXIT, ServerUnreached } from '../process/errors.ts';
import { serverClient } from '../server/http-client.ts';
import { readAdminCredentials } from '../server/read-credentials.ts';
import { serverAddress } from '../server/server-address.ts';
import { ofError, serverFindings, type ServerFindings } from '../server/server-findings.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const GIT_MS_MAX = 10_000;
const FREE_BYTES_WANTED = 1024 ** 3;

export const doctorCommand: Command = {
  spec: {
    name: 'doctor',
    usage: '[options]',
    about:
      'Says what stages can run in on this machine, what it lacks for more, and how to mend that. A server and a runner look for the same when they start. ' +
      'Where a server is named (--server, SERVICE_URL), also whether it answers and takes the token, and, to administrators, what it lacks to run stages.',
    options: { json: { type: 'boolean', text: 'One JSON object instead of text.' }, ...SERVER_OPTIONS },
    positionals: { min: 0, max: 0, missing: '' },
    environment: [
      ['SERVICE_ADMIN_KEY', 'the administration key of the server; before the API key and a login'],
      ...SERVER_ENVIRONMENT,
    ],
    examples: [
      ['penstock doctor', 'a line for each thing, and the remedy where it lacks'],
      ['penstock doctor --server https://ci.example.org', 'lines about that server, too'],
      ['penstock doctor --json | jq -r ".findings[] | select(.ok | not) | .remedy"', 'the remedies, for a program'],
    ],
    exitCodes: [[EXIT.success, 'it has looked; what lacks is told'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  async run(args, context) {
    const { terminal, cwd, env } = context;
    const [server, ...machine] = await Promise.all([
      ofServer(args, context),
      git(),
      user(),
      processes(),
      sandbox(),
      containers(env),
      cluster(env),
      controlGroups(),
      disk(cwd),
    ]);
    const findings = [...machine, ...server.findings];
    if (args.flag('json')) terminal.print(`${JSON.stringify({ findings })}\n`);
    else for (const finding of findings) terminal.print(findingText(finding));
    return server.exitCode;
  },
};

/** Nothing of the default server: who has none is not told to start one. */
async function ofServer(args: ParsedArguments, context: CommandContext): Promise<ServerFindings> {
  const isNamed = ['server', 'token-file', 'data-dir'].some((option) => args.text(option) !== undefined);
  if (!isNamed && !context.env['SERVICE_URL']) return { findings: [], exitCode: EXIT.success };
  const server = serverAddress(args.text('server'), context.env);
  try {
    return await serverFindings(serverClient(server, await readAdminCredentials(args, context, server)));
  } catch (error) {
    // Of a token that cannot be had, or not be renewed: what the machine lacks is told all the same.
    if (!(error instanceof CommandError)) throw error;
    return ofError(error, error instanceof ServerUnreached ? 'server' : 'token');
  }
}

async function git(): Promise<Finding> {
  try {
    const { stdout } = await promisify(execFile)('git', ['--version'], { timeout: GIT_MS_MAX });
    return { name: 'git', ok: true, found: stdout.trim() };
  } catch {
    const remedy = "install git: runs that a push starts, and 'workspace: fresh', need it";
    return { name: 'git', ok: false, found: 'there is no git', remedy };
  }
}

function user(): Finding {
  const isRoot = process.getuid?.() === 0;
  return {
    name: 'users',
    ok: isRoot,
    found: isRoot
      ? 'each key can have a user of its own (SERVICE_STAGE_UIDS)'
      : 'stages run as the user of the server, one beside the other',
    ...(isRoot ? {} : { remedy: 'start the server or the runner as root, or use the sandbox' }),
  };
}

/** What a stage as a plain process takes: also a way in which nobody else's processes are seen. */
async function processes(): Promise<Finding> {
  const executor = new ProcessExecutor({ warn: () => {} });
  try {
    const stage = executor.start(TRUE, { write: () => {} });
    const exit = await stage.ended;
    if (exit.kind !== 'exit' || exit.code !== 0)
      return {
        name: 'processes',
        ok: false,
        found: exit.kind === 'lost' ? exit.cause : `a stage ended as ${JSON.stringify(exit)}`,
        remedy: 'install coreutils and util-linux: no stage runs without',
      };
    return executor.isIsolated
      ? {
          name: 'processes',
          ok: true,
          found: 'stages can run as plain processes, which see no others (executor=process)',
        }
      : {
          name: 'processes',
          ok: false,
          found: 'stages can run as plain processes, but see those of others, and may outlive their end',
          remedy: 'start it as root, or allow user namespaces',
        };
  } finally {
    await executor.close();
  }
}

const TRUE = {
  helperKey: 'doctor',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  cwd: '/',
  timeoutMs: 20_000,
};

async function sandbox(): Promise<Finding> {
  const why = process.platform === 'linux' ? await whySandboxLacks(undefined) : 'sandboxes are of Linux';
  return why === null
    ? { name: 'sandbox', ok: true, found: 'stages can run in sandboxes (executor=sandbox)' }
    : {
        name: 'sandbox',
        ok: false,
        found: why,
        remedy: 'install bubblewrap, and passt or slirp4netns for the network; allow user namespaces',
      };
}

async function containers(env: Readonly<Record<string, string | undefined>>): Promise<Finding> {
  const { engine, why, isInstalled } = await findEngine(env);
  const remedy = isInstalled
    ? 'an engine is there and runs no container for this user: mend what it says, for stages with an image need one'
    : 'install podman or docker: stages with an image need one';
  return engine === null
    ? { name: 'containers', ok: false, found: why, remedy }
    : { name: 'containers', ok: true, found: `stages can have an image, by ${engine.kind} (executor=container)` };
}

function cluster(env: Readonly<Record<string, string | undefined>>): Finding {
  const isThere = env['KUBECONFIG'] !== undefined || env['KUBERNETES_SERVICE_HOST'] !== undefined;
  return {
    name: 'kubernetes',
    ok: isThere,
    found: isThere ? 'a cluster is named; a runner asks it when it starts' : 'no cluster is named',
    ...(isThere ? {} : { remedy: 'set KUBECONFIG, or start the runner in a cluster: only for stages as Pods' }),
  };
}

/** What bounds the stages of this machine. */
export function controlGroups(version = ControlGroups.look()): Finding {
  if (process.platform !== 'linux')
    return { name: 'cgroups', ok: false, found: 'control groups are of Linux: stages take what they can get' };
  const name = 'cgroups';
  if (version === null)
    return {
      name,
      ok: false,
      found:
        'none that this user may divide: memory and disk of a stage are watched once a second, its processes are bounded by its own limits, `cpu` by nothing',
      remedy: 'start the runner as root, or as a service that its own group is delegated to (systemd: Delegate=yes)',
    };
  const bounded = 'the kernel bounds memory, processes and processors of a stage; its disk is watched';
  return version === 2
    ? { name, ok: true, found: `version 2: ${bounded}` }
    : {
        name,
        ok: true,
        found: `version 1: ${bounded}; \`resources\` of a container only where podman is root’s, or by docker`,
      };
}

function disk(folder: string): Finding {
  const { bavail, bsize, ffree } = statfsSync(folder);
  const free = bavail * bsize;
  const ok = free >= FREE_BYTES_WANTED;
  return {
    name: 'disk',
    ok,
    found: `${Math.floor(free / 1024 ** 2)} MiB and ${ffree} files are free in this folder`,
    ...(ok ? {} : { remedy: 'make room: a runner takes no stage where little is left' }),
  };
}
