/** Everything of a tenant deleted on a server of one machine, with SQLite. */
import { describePurge } from '../support/purge-suite.ts';
import { startServer } from '../support/server.ts';

describePurge('on one machine', async (env) => await startServer({ env }));
