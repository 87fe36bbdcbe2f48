/** What others verify id tokens by: the issuer's description and its public keys, as OpenID Connect Discovery has them. */
import type { FastifyInstance } from 'fastify';
import { ID_TOKEN_CLAIMS } from '../model/id-tokens.ts';
import { SIGNING_ALGORITHM, type SigningKeys } from '../model/signing-keys.ts';

export interface DiscoveryRoutesOptions {
  readonly keys: SigningKeys;
  /** Without a slash at its end. */
  readonly issuer: () => string;
}

/** Keys are published a day before they sign. */
const CACHED = 'public, max-age=300';

export function addDiscoveryRoutes(app: FastifyInstance, { keys, issuer }: DiscoveryRoutesOptions): void {
  app.get('/.well-known/openid-configuration', { config: { tier: 'read' } }, async (_request, reply) =>
    reply.header('Cache-Control', CACHED).send({
      issuer: issuer(),
      jwks_uri: `${issuer()}/.well-known/jwks.json`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [SIGNING_ALGORITHM],
      scopes_supported: ['openid'],
      claims_supported: ID_TOKEN_CLAIMS,
    }),
  );

  app.get('/.well-known/jwks.json', { config: { tier: 'read' } }, async (_request, reply) =>
    reply.header('Cache-Control', CACHED).send({ keys: await keys.published() }),
  );
}
