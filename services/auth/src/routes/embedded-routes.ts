/** The embedded provider's own addresses: the protocol, and the two pages on which a developer logs in and consents. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { AuthRefusal } from '../model/errors.ts';
import { EMBEDDED_PATH, type Embedded } from '../embedded/embedded-provider.ts';
import { embeddedConsentPage, embeddedLoginPage, PAGE_HEADERS } from './pages.ts';
import { acceptForms, formOf, leaveForms } from './forms.ts';

const STEP = `${EMBEDDED_PATH}/interaction/:uid`;
const BODY_BYTES_MAX = 16 * 1024;
/** The names that git hosts allow, in lower case: one person has one name. */
const LOGIN = /^[a-z0-9](?:[a-z0-9._-]{0,37}[a-z0-9])?$/u;

export async function addEmbeddedRoutes(app: FastifyInstance, embedded: () => Promise<Embedded>): Promise<void> {
  await app.register(async (pages) => {
    acceptForms(pages);
    addPages(pages, embedded);
  });
  await app.register(async (protocol) => {
    leaveForms(protocol);
    for (const [method, tier] of [
      ['GET', 'read'],
      ['POST', 'api'],
    ] as const) {
      protocol.route({
        method,
        url: `${EMBEDDED_PATH}/*`,
        config: { tier },
        bodyLimit: BODY_BYTES_MAX,
        async handler(request, reply) {
          const provider = await embedded();
          // It writes to the socket itself; what the server puts on every answer has to be there already.
          reply.hijack();
          for (const [name, value] of Object.entries(reply.getHeaders()))
            if (value !== undefined) reply.raw.setHeader(name, value);
          await provider.handle(request.raw, reply.raw);
        },
      });
    }
  });
}

function addPages(app: FastifyInstance, embedded: () => Promise<Embedded>): void {
  app.get<{ Params: { uid: string } }>(STEP, { config: { tier: 'read' } }, async (request, reply) => {
    const question = await underWay(async () => (await embedded()).question(request.raw, reply.raw));
    const action = `${EMBEDDED_PATH}/interaction/${encodeURIComponent(request.params.uid)}`;
    return reply
      .headers(PAGE_HEADERS)
      .send(question.kind === 'login' ? embeddedLoginPage(action) : embeddedConsentPage(action, question.login));
  });

  app.post<{ Params: { uid: string } }>(
    STEP,
    { config: { tier: 'api' }, bodyLimit: BODY_BYTES_MAX },
    async (request, reply) => {
      const provider = await embedded();
      const question = await underWay(() => provider.question(request.raw, reply.raw));
      const form = formOf(request);
      if (question.kind === 'consent') {
        const decision = form.get('decision');
        if (decision !== 'allow' && decision !== 'deny')
          throw new AuthRefusal(
            400,
            'bad_request',
            'The form was sent without a decision: go back and choose Allow or Refuse.',
          );
        return onward(reply, await provider.answerConsent(request.raw, reply.raw, decision === 'allow'));
      }
      const login = (form.get('login') ?? '').trim().toLowerCase();
      if (!LOGIN.test(login)) {
        const action = `${EMBEDDED_PATH}/interaction/${encodeURIComponent(request.params.uid)}`;
        return reply
          .code(400)
          .headers(PAGE_HEADERS)
          .send(embeddedLoginPage(action, 'A login name has 1 to 39 letters, digits, dots, dashes and underscores.'));
      }
      return onward(reply, await provider.answerLogin(request.raw, reply.raw, login));
    },
  );
}

function onward(reply: FastifyReply, location: string): FastifyReply {
  return reply.redirect(location, 303);
}

/** A step is this browser's own: its cookie says so, and the provider looks. */
async function underWay<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (!(cause instanceof Error) || cause.name !== 'SessionNotFound') throw cause;
    throw new AuthRefusal(
      400,
      'invalid_state',
      'This login was not begun in this browser, or took too long: begin it again.',
    );
  }
}
