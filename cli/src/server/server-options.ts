/** The options by which commands find their server and their token, and how they end where that does not do. */
import { EXIT } from '../process/errors.ts';

export const SERVER_OPTIONS = {
  server: {
    type: 'string',
    short: 's',
    value: 'URL',
    text: 'The server; default SERVICE_URL, else http://127.0.0.1:8080.',
  },
  'token-file': {
    type: 'string',
    value: 'FILE',
    text: 'A file that holds the API key or a token. There is no option for the token itself: others could read it in the list of processes.',
  },
  'data-dir': {
    type: 'string',
    value: 'DIR',
    text: 'The data folder of a server on this machine, whose key is taken where none is given; default SERVICE_DATA_DIR, else $XDG_DATA_HOME/penstock or ~/.local/share/penstock.',
  },
} as const;

export const SERVER_ENVIRONMENT = [
  ['SERVICE_URL', 'the address of the server'],
  ['SERVICE_API_KEY', 'the API key or a personal token, where --token-file is not given; before a login'],
  ['SERVICE_DATA_DIR', 'where a server on this machine keeps the key that it made for itself'],
] as const;

/** The options of commands that act as the user who has logged in, and take no other token. */
export const LOGIN_OPTIONS = { server: SERVER_OPTIONS.server } as const;

export const LOGIN_ENVIRONMENT = [
  ['SERVICE_URL', 'the address of the server'],
  ['XDG_CONFIG_HOME', 'where logins are kept, in penstock/logins; default ~/.config'],
] as const;

export const SERVER_EXIT_CODES = [
  [EXIT.unreached, 'the server was not reached, or is not available now'],
  [EXIT.refused, 'the server refused: the token, or what was asked for'],
] as const;
