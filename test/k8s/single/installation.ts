/** `k8s/overlays/single` on a lab: built as an administrator builds it, applied, and taken away again. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pause } from '@penstock/async';
import { kubectl, type LabPlace } from '../lab-faults.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const SINGLE = 'k8s/overlays/single';
const OVERLAY = 'k8s/overlays/lab';
const AUTHORITY = 'authority.pem';
export const NAMESPACE = 'penstock';
export const GIT_HOST = 'git.penstock-lab.net';
/** On one busy node everything starts at once. */
const READY_SECS = 300;
/** More than claims at a time: a volume whose claim is gone is used again only by hand. */
const VOLUMES = 16;

const SETTINGS = `SERVICE_GIT_ALLOWED_HOSTS=${GIT_HOST}
GIT_SSL_CAINFO=/etc/git-authority/authority.pem
SERVICE_K8S_IMAGE=docker.io/library/busybox:latest
SERVICE_WEBHOOK_WAIT_SECS=0
SERVICE_RATE_LIMIT_READ=0
SERVICE_RATE_LIMIT_API=0
SERVICE_RATE_LIMIT_WEBHOOK=0
`;

export interface Installation {
  readonly apiKey: string;
  readonly webhookSecret: string;
  /** Of the git host's certificate. */
  readonly authority: string;
}

/** Applied; its runners are none. */
export async function install(lab: LabPlace): Promise<void> {
  const folder = manifestsOf(lab);
  rmSync(folder, { recursive: true, force: true });
  for (const name of ['deploy', 'k8s'])
    cpSync(join(ROOT, name), join(folder, name), {
      recursive: true,
      filter: (path) => !/\/(secrets|settings\.env|node_modules)$/.test(path),
    });
  const single = join(folder, SINGLE);
  execFileSync('sh', [join(folder, 'k8s/setup.sh'), 'https://ci.example.org'], {
    env: {
      ...process.env,
      PENSTOCK_GENERATE: `${process.execPath} ${join(ROOT, 'deploy/nats/generate.ts')} --out ${single}/secrets/nats`,
    },
    stdio: 'pipe',
  });
  appendFileSync(join(single, 'settings.env'), SETTINGS);
  // The database of the lab asks for no password.
  writeFileSync(join(single, 'secrets/store-url'), 'mongodb://mongodb:27017/penstock');
  const overlay = join(folder, OVERLAY);
  cpSync(join(HERE, 'overlay'), overlay, { recursive: true });
  await startGitHost(lab, folder, join(overlay, AUTHORITY));
  await kubectl(lab, ['apply', '-f', '-'], volumes(lab));
  await kubectl(lab, ['apply', '-k', overlay]);
}

/** Of what was installed. */
export function installationOf(lab: LabPlace): Installation {
  const folder = manifestsOf(lab);
  const secret = (name: string): string => readFileSync(join(folder, SINGLE, 'secrets', name), 'utf8');
  return {
    apiKey: secret('api-key'),
    webhookSecret: secret('webhook-secret'),
    authority: join(folder, OVERLAY, AUTHORITY),
  };
}

function manifestsOf({ folder }: LabPlace): string {
  return join(folder, 'single', 'manifests');
}

export async function untilReady(lab: LabPlace): Promise<void> {
  for (const each of ['statefulset/nats', 'statefulset/mongodb']) await rolledOut(lab, each);
  for (const each of SERVICES) await rolledOut(lab, `deployment/${each}`);
}

export const SERVICES = ['gateway', 'auth', 'registry', 'webhook-ingest', 'scheduler'] as const;

export async function rolledOut(lab: LabPlace, what: string): Promise<void> {
  const deadline = Date.now() + READY_SECS * 1_000;
  for (;;) {
    try {
      await kubectl(lab, ['-n', NAMESPACE, 'rollout', 'status', what, '--timeout=15s'], undefined);
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

export async function uninstall(lab: LabPlace): Promise<void> {
  const names = [NAMESPACE, 'penstock-stages', 'penstock-git'];
  // A namespace waits for half of the longest grace that one of its Pods has: runners have eleven minutes.
  await kubectl(lab, [
    '-n',
    NAMESPACE,
    'delete',
    'deployments,statefulsets',
    '--all',
    '--cascade=background',
    '--wait=false',
  ]);
  await kubectl(lab, ['-n', NAMESPACE, 'delete', 'pods', '--all', '--grace-period=5']);
  await kubectl(lab, ['delete', 'namespace', ...names, '--ignore-not-found', '--wait=false']);
  for (let tries = 0; tries < 120; tries += 1) {
    const left = await kubectl(lab, ['get', 'namespace', ...names, '--ignore-not-found', '-o', 'name']);
    if (left.trim() === '') break;
    await pause(1_000);
  }
  await kubectl(lab, ['delete', 'pv', '-l', 'penstock-lab=single', '--ignore-not-found', '--wait=false']);
  // Their claims went with the namespace, which nobody looks at again for a while.
  const patch = ['--type=merge', '--patch', '{"metadata":{"finalizers":null}}'];
  for (const volume of (await kubectl(lab, ['get', 'pv', '-l', 'penstock-lab=single', '-o', 'name'])).split('\n'))
    if (volume !== '') await kubectl(lab, ['patch', volume, ...patch]).catch(() => '');
  rmSync(join(lab.folder, 'single', 'volumes'), { recursive: true, force: true });
}

/** Volumes of the node's disk, for a lab has nobody who makes any. */
function volumes({ folder }: LabPlace): string {
  return Array.from({ length: VOLUMES }, (_, at) => {
    const path = join(folder, 'single', 'volumes', String(at));
    mkdirSync(path, { recursive: true, mode: 0o777 });
    execFileSync('chmod', ['777', path]);
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `penstock-lab-${at}`, labels: { 'penstock-lab': 'single' } },
      spec: {
        capacity: { storage: '20Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        hostPath: { path },
      },
    });
  }).join('\n---\n');
}

async function startGitHost(lab: LabPlace, folder: string, authority: string): Promise<void> {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const openssl = (...words: string[]): unknown => execFileSync('openssl', words, { stdio: 'pipe' });
  const authorityKey = join(folder, 'authority-key.pem');
  const subject = ['-days', '30', '-nodes', '-newkey', 'rsa:2048'];
  openssl('req', '-x509', ...subject, '-keyout', authorityKey, '-out', authority, '-subj', '/CN=lab');
  const names = ['-addext', `subjectAltName=DNS:${GIT_HOST}`, '-addext', 'basicConstraints=CA:FALSE'];
  const signed = ['-CA', authority, '-CAkey', authorityKey];
  openssl('req', '-x509', ...subject, ...signed, '-keyout', key, '-out', cert, '-subj', `/CN=${GIT_HOST}`, ...names);
  await kubectl(lab, ['apply', '-f', '-'], readFileSync(join(HERE, 'git-host.yaml'), 'utf8'));
  const files = [`--from-file=key.pem=${key}`, `--from-file=cert.pem=${cert}`];
  const script = `--from-file=git-server.js=${join(HERE, 'git-server.js')}`;
  const secret = ['-n', 'penstock-git', 'create', 'secret', 'generic', 'git-server', ...files, script];
  await kubectl(lab, ['apply', '-f', '-'], await kubectl(lab, [...secret, '--dry-run=client', '-o', 'json']));
}
