/** `penstock service scaler`: the runners of a cluster by what waits for them, where there is no KEDA. One is enough; it keeps nothing. */
import { pauseOrAbort } from '@penstock/async';
import { ConfigurationError } from '@penstock/config';
import { openScaleTarget, type ScaleTargetSettings } from '@penstock/executor-kubernetes';
import { runServiceWithoutBroker } from '@penstock/service';
import { figureOf } from './figures.ts';
import { Scaler } from './scaler.ts';

/** Prometheus scrapes every 15 s or so. */
const LOOK_EVERY_MS = 5_000;

const KEYS = [
  'scalerPrometheusUrl',
  'scalerQuery',
  'scalerTarget',
  'scalerSlots',
  'scalerMin',
  'scalerMax',
  'scalerCooldown',
  'k8sKubeconfig',
] as const;

export function runScalerService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runServiceWithoutBroker(
    {
      name: 'scaler',
      keys: KEYS,
      check({ scalerPrometheusUrl, scalerTarget, scalerMin, scalerMax }) {
        const problems: string[] = [];
        if (scalerPrometheusUrl === undefined)
          problems.push('SERVICE_SCALER_PROMETHEUS_URL is missing: the Prometheus that scrapes the schedulers');
        if (targetOf(scalerTarget) === undefined)
          problems.push(
            "SERVICE_SCALER_TARGET is to be '<namespace>/statefulset/<name>' or '<namespace>/deployment/<name>'",
          );
        if (scalerMin > scalerMax) problems.push('SERVICE_SCALER_MIN is more than SERVICE_SCALER_MAX');
        if (problems.length > 0) throw new ConfigurationError(problems);
      },
      async start({ settings, log }) {
        const { scalerPrometheusUrl = '', scalerQuery, scalerTarget, k8sKubeconfig } = settings;
        const wanted = targetOf(scalerTarget);
        if (wanted === undefined) throw new RangeError('the target was checked');
        const target = openScaleTarget({ ...wanted, kubeconfig: k8sKubeconfig });
        const scaler = new Scaler({
          target,
          demand: () => figureOf(scalerPrometheusUrl, scalerQuery),
          slots: settings.scalerSlots,
          min: settings.scalerMin,
          max: settings.scalerMax,
          cooldownMs: settings.scalerCooldown,
          log,
        });
        const ending = new AbortController();
        const looking = (async () => {
          while (!ending.signal.aborted) {
            await scaler.look();
            await pauseOrAbort(LOOK_EVERY_MS, ending.signal);
          }
        })();
        return {
          ready: () => (scaler.problem === undefined ? Promise.resolve() : Promise.reject(new Error(scaler.problem))),
          drain: [
            [
              'looking',
              async () => {
                ending.abort();
                await looking;
              },
            ],
          ],
        };
      },
    },
    env,
  );
}

function targetOf(text: string): Pick<ScaleTargetSettings, 'namespace' | 'kind' | 'name'> | undefined {
  const [namespace = '', kind = '', name = '', ...rest] = text.split('/');
  if (namespace === '' || name === '' || rest.length > 0) return undefined;
  return kind === 'statefulset' || kind === 'deployment' ? { namespace, kind, name } : undefined;
}
