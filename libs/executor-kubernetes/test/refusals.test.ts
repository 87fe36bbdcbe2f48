/** Which refusals of an API server a stage waits for. */
import { expect, it } from 'vitest';
import { ClusterError, mayPass } from '../src/errors.ts';

const forbidden =
  'creating a Pod: pods is forbidden: User "system:serviceaccount:stages:runner" cannot create resource "pods"';

it.each([
  [0, 'creating a Pod: no answer'],
  [429, 'creating a Pod: too many requests'],
  [503, 'creating a Pod: the server is shutting down'],
  [
    403,
    'creating a Pod: pods "a" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0',
  ],
  [
    403,
    'creating a Pod: pods "a" is forbidden: error looking up service account stages/default: serviceaccount "default" not found',
  ],
  // As one says that has just started.
  [
    403,
    `${forbidden} in API group "" in the namespace "stages": RBAC: role.rbac.authorization.k8s.io "runner" not found`,
  ],
])('%i passes: %s', (code, message) => {
  expect(mayPass(new ClusterError(code, message))).toBe(true);
});

it.each([
  [403, `${forbidden} in API group "" in the namespace "stages"`],
  [404, 'creating a Pod: namespaces "stages" not found'],
  [422, 'creating a Pod: Pod "a" is invalid'],
])('%i does not: %s', (code, message) => {
  expect(mayPass(new ClusterError(code, message))).toBe(false);
});
