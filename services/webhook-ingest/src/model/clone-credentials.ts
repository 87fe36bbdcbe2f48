/** What a connected repository is read with where its user has named a secret for that: asked of auth at each fetch, and kept nowhere (P31). */
import {
  type Bus,
  type CloneAnswer,
  type CloneRequest,
  type CloneSecret,
  cloneSecretRemedy,
  subjects,
} from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { GitError, type CloneCredential } from '@penstock/git';
import { newSealingKey } from '@penstock/identity';
import { askService } from '@penstock/service';
import type { CloneSecretNames } from './clone-secret-names.ts';
import { gitCodeOf } from './errors.ts';

export interface OwnCredential {
  /** Of the secret. */
  readonly name: string;
  readonly credential: CloneCredential;
}

type Asked = Omit<CloneRequest, 'sealTo'>;

export interface CloneCredentials {
  /** Undefined: it is read with what the server has. Throws GitError `denied`, `Unavailable`. */
  of(asked: Asked): Promise<OwnCredential | undefined>;
}

export function cloneCredentials(bus: Bus, names: Pick<CloneSecretNames, 'has'>): CloneCredentials {
  const key = newSealingKey();
  return {
    async of(asked) {
      if (!(await names.has(asked.userId, asked.provider, asked.repository))) return undefined;
      const question = { ...asked, sealTo: key.publicKey };
      const answer = await askService<CloneRequest, CloneAnswer>(bus, 'auth', subjects.cloneSecret, question);
      if (answer.kind === 'none') return undefined;
      if (answer.kind === 'refused') throw new GitError('denied', answer.why);
      if (answer.kind === 'unavailable')
        throw new Unavailable('What opens the repository cannot be looked up at the moment; try again.');
      const { name, opens } = JSON.parse(Buffer.from(await key.open(answer.sealed)).toString()) as CloneSecret;
      return { name, credential: opens };
    },
  };
}

/** What is told of a fetch that went wrong, with what can be done where that may be for the secret. */
export function toldOf(error: unknown, own: OwnCredential | undefined): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = gitCodeOf(error);
  return own !== undefined && (code === 'denied' || code === 'not_found')
    ? `${message}; ${cloneSecretRemedy(own.name)}`
    : message;
}
