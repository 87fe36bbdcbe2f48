import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT } from '../process/errors.ts';
import { letStagesIn } from '../process/file-modes.ts';

export const serveCommand: Command = {
  spec: {
    name: 'serve',
    usage: '[options]',
    about:
      'Starts a server with everything that it needs on this machine: broker, store, scheduler, runner and the API. On a loopback address it makes its own key ' +
      'and prints it; on any other it runs in production mode and asks for JWT_SECRET and SERVICE_API_KEY.',
    options: {
      listen: { type: 'string', value: 'HOST:PORT', text: 'Where to listen; default 127.0.0.1:8080 (SERVICE_LISTEN).' },
      'data-dir': {
        type: 'string',
        value: 'DIR',
        text: 'Where everything is kept; the same folder resumes its runs (SERVICE_DATA_DIR).',
      },
      playground: { type: 'boolean', text: 'Serve an IDE at /graphql/playground (SERVICE_PLAYGROUND).' },
      'cors-origins': {
        type: 'string',
        value: 'A,B',
        text: 'Origins whose pages may call the API (SERVICE_CORS_ORIGINS).',
      },
    },
    positionals: { min: 0, max: 0, missing: '' },
    environment: [
      ['SERVICE_API_KEY', 'the key that callers present; made and kept in the data folder in development mode'],
      ['SERVICE_NATS_URL', 'a broker of your own instead of the embedded one'],
    ],
    examples: [
      ['penstock serve', 'for this machine only, data in the default folder'],
      ['penstock serve --listen 127.0.0.1:9000 --data-dir /tmp/try', 'another port, a folder to throw away'],
    ],
    exitCodes: [
      [EXIT.success, 'stopped by a signal, after everything had ended'],
      [EXIT.failure, 'it could not start, or had to stop'],
      [EXIT.usage, 'wrong usage'],
    ],
  },
  async run(args: ParsedArguments, { env }: CommandContext) {
    letStagesIn();
    const { runServe } = await import('@penstock/standalone');
    return await runServe([...args.raw], env);
  },
};
