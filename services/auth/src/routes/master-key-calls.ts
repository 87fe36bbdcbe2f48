/** What auth answers to administrators about master keys (`MasterKeyCalls` in @penstock/identity). */
import { Unavailable } from '@penstock/errors';
import type { MasterKeyCalls } from '@penstock/identity';
import type { AuditLog } from '@penstock/store';
import { masterKeysView, type KeyRotationOptions } from '../flows/key-rotation.ts';
import type { Resealing } from '../model/resealing.ts';

export interface MasterKeyCallsOptions extends KeyRotationOptions {
  readonly resealing: Pick<Resealing, 'begin'>;
  readonly audit: AuditLog;
  readonly now: () => number;
}

type Handlers = {
  readonly [V in keyof MasterKeyCalls]: (request: MasterKeyCalls[V]['request']) => Promise<MasterKeyCalls[V]['answer']>;
};

export function masterKeyCalls(options: MasterKeyCallsOptions): Handlers {
  const { keys, resealing, audit, now } = options;
  return {
    'keys.state': () => masterKeysView(options),
    async 'keys.rotate'({ actor, ip }) {
      const { currentId } = keys;
      if (currentId === undefined) throw new Unavailable('This server keeps no secrets: it has no SERVICE_MASTER_KEY.');
      resealing.begin();
      audit.record({ at: now(), actor, action: 'key.rotate', target: `master-key/${currentId}`, outcome: 'ok', ip });
      return await masterKeysView(options);
    },
  };
}
