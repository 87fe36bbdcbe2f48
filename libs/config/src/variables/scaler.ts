/** How many runners there are to be. */
import { duration, integer, origin, text } from '../kinds.ts';
import { DAY_MS, MINUTE_MS, optional, variable } from './declared.ts';

/**
 * Each scheduler tells of all runners, so of several the same is counted once; a figure that nobody has is none; and where no scheduler is
 * scraped there is none at all.
 */
export const DEMAND_QUERY =
  '(sum(penstock_queue_demand) or vector(0))' +
  ' + (sum(max by (labels) (penstock_runner_slots{state="busy"})) or vector(0))' +
  ' + 0 * sum(penstock_partitions)';

export const scalerVariables = {
  scalerPrometheusUrl: optional({
    name: 'SERVICE_SCALER_PROMETHEUS_URL',
    kind: origin(),
    defaultText: 'none: to be given',
    services: ['scaler'],
    meaning: 'The Prometheus that scrapes the schedulers.',
  }),
  scalerQuery: variable({
    name: 'SERVICE_SCALER_QUERY',
    kind: text(),
    default: DEMAND_QUERY,
    defaultText: 'stages that wait, and those that run, as in `k8s/components/keda`',
    services: ['scaler'],
    meaning: 'How many slots are needed: one figure. Where it has none, nothing changes.',
  }),
  scalerTarget: variable({
    name: 'SERVICE_SCALER_TARGET',
    kind: text(),
    default: 'penstock/statefulset/runner',
    services: ['scaler'],
    meaning: 'What is scaled: `<namespace>/statefulset/<name>` or `<namespace>/deployment/<name>`.',
  }),
  scalerSlots: variable({
    name: 'SERVICE_SCALER_SLOTS',
    kind: integer({ min: 1, max: 10_000 }),
    default: 8,
    services: ['scaler'],
    meaning: 'The slots of one runner.',
  }),
  scalerMin: variable({
    name: 'SERVICE_SCALER_MIN',
    kind: integer({ min: 0, max: 10_000 }),
    default: 0,
    services: ['scaler'],
    meaning: 'The fewest runners.',
  }),
  scalerMax: variable({
    name: 'SERVICE_SCALER_MAX',
    kind: integer({ min: 1, max: 10_000 }),
    default: 4,
    services: ['scaler'],
    meaning: 'The most runners.',
  }),
  scalerCooldown: variable({
    name: 'SERVICE_SCALER_COOLDOWN',
    kind: duration({ minMs: 0, maxMs: DAY_MS }),
    default: 5 * MINUTE_MS,
    services: ['scaler'],
    meaning: 'For how long fewer runners must do before there are fewer.',
  }),
} as const;
