/** What the registry answers on the bus: `svc.registry.<verb>`, with the types of `@penstock/extension`. */
import type { Bus, BusSubscription } from '@penstock/bus';
import type { RegisterKeyRequest, RegistryCaller } from '@penstock/extension';
import { answerCalls } from '@penstock/service';
import type { Registry } from '../operations/registry.ts';

export function answerRegistryCalls(bus: Bus, registry: Registry, now: () => number): BusSubscription {
  return answerCalls(bus, 'registry', {
    search: (request: Parameters<Registry['search']>[0]) => registry.search(request),
    extension: (request: Parameters<Registry['extension']>[0]) => registry.extension(request),
    versions: (request: Parameters<Registry['versions']>[0]) => registry.versions(request),
    publish: (request: Parameters<Registry['publish']>[0]) => registry.publish(request),
    yank: (request: Parameters<Registry['yank']>[0]) => registry.yank(request),
    resolve: (request: Parameters<Registry['resolve']>[0]) => registry.resolve(request),
    package: (request: Parameters<Registry['packagePart']>[0]) => registry.packagePart(request),
    forgetTenant: (request: Parameters<Registry['forgetTenant']>[0]) => registry.forgetTenant(request),
    keys: ({ caller }: { caller: RegistryCaller }) => registry.keys.of(registry.keyOwner(caller)),
    registerKey: ({ caller, ...key }: RegisterKeyRequest) =>
      registry.keys.register(registry.keyOwner(caller), key, now()),
    removeKey: ({ caller, id }: { caller: RegistryCaller; id: string }) =>
      registry.keys.remove(registry.keyOwner(caller), id),
  });
}
