/**
 * Every variable that configures a service, declared once, in the order of the table: readers, help texts and the table of
 * docs/operating.md are made from it. Those of one concern stand together in `variables/`. A flag of `penstock serve`, where there is one, stands above its variable.
 */
import { choice } from './kinds.ts';
import { objectsUrl } from './object-address.ts';
import { allServices, optional, variable, withScaler, type Variable } from './variables/declared.ts';
import { engineVariables } from './variables/engine.ts';
import { repositoryVariables } from './variables/repositories.ts';
import { requestVariables } from './variables/requests.ts';
import { scalerVariables } from './variables/scaler.ts';
import { serviceVariables } from './variables/service.ts';
import { stageVariables } from './variables/stages.ts';
import { userVariables } from './variables/users.ts';

export const variables = {
  ...serviceVariables,
  ...engineVariables,
  ...stageVariables,
  ...userVariables,
  ...requestVariables,
  ...repositoryVariables,
  extensionPolicy: variable({
    name: 'SERVICE_EXTENSION_POLICY',
    kind: choice('any', 'signed'),
    default: 'any',
    services: ['serve', 'registry', 'gateway'],
    meaning: '`signed`: extensions without a valid signature of their owner are neither published nor used.',
  }),
  objectsUrl: optional({
    name: 'SERVICE_OBJECTS_URL',
    kind: objectsUrl(),
    defaultText: 'a folder in the data folder; `nats:` for services apart',
    services: ['serve', 'registry', 'runner'],
    meaning: 'Where packages and other large objects are kept.',
  }),
  ...scalerVariables,
  logLevel: variable({
    name: 'SERVICE_LOG_LEVEL',
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    services: withScaler(allServices),
    meaning: 'The least severe lines that a service writes about itself.',
  }),
} as const;

type Variables = typeof variables;
export type VariableKey = keyof Variables;
export type ValueOf<K extends VariableKey> =
  Variables[K] extends Variable<infer T, infer D> ? (undefined extends D ? T | undefined : T) : never;

/** Read by `npm start` before any service runs, and described there (`bootstrap/`). */
export const bootstrapVariables: readonly string[] = [
  'SERVICE_BROKER_RELEASE_URL',
  'SERVICE_BROKER_INDEX_URL',
  'SERVICE_BROKER_GO',
  'SERVICE_BROKER_TIMEOUT_SECS',
];
