/** What the gateway depends on, as narrow as it uses it; `service.ts` and `services/standalone` make the real ones. */
import type { Bus } from '@penstock/bus';
import type { RateLimits } from '@penstock/http';
import type { Log } from '@penstock/telemetry/log';
import type { Meter, MetricsText } from '@penstock/telemetry/metrics';
import type { Tiers } from '@penstock/config';
import type { ParseResult } from '@penstock/pipeline';
import type { AuditLog, AuditReader, DocumentStore, RunsReader } from '@penstock/store';
import type { Authenticator, Callers } from '@penstock/identity';
import type { FastifyInstance } from 'fastify';
import type { Backups } from './admin/backups.ts';
import type { KeptContents } from './artifacts/kept-files.ts';

/** What routes of other services are given when they are added to this server. */
interface RouteDependencies {
  readonly callers: Callers;
}

export interface GatewayOptions {
  readonly bus: Bus;
  readonly runs: RunsReader;
  /** Opened with `gatewayCollections` among its collections. */
  readonly store: Pick<DocumentStore, 'ping' | 'collection'>;
  /** P9: what the journal was set up with. */
  readonly partitions: number;
  /** `SERVICE_API_KEY`; absent: no API key is configured and log streams need no token while reading is public. */
  readonly apiKey?: string | undefined;
  /** `SERVICE_ADMIN_KEY`; absent: admins who are logged in administer, and in development mode the API key. */
  readonly adminKey?: string | undefined;
  /** `JWT_SECRET`; absent: there are no access tokens. */
  readonly jwtSecret?: string | undefined;
  /** Further ways of authentication; they are asked last. */
  readonly authenticators?: readonly Authenticator[] | undefined;
  /** `SERVICE_PUBLIC_READ`: anonymous queries see the tenant `service`. */
  readonly publicRead: boolean;
  /** Whether a session is active, where this gateway cannot hear of revocations; default: asks auth over the bus. */
  readonly isSessionActive?: ((sessionId: string) => Promise<boolean>) | undefined;
  /** What each tier allows; default the built-in table. */
  readonly tiers?: Tiers | undefined;
  /** `SERVICE_TENANT_TIER`: whose limits hold in the tenant `service`; absent: none. */
  readonly tenantTier?: string | undefined;
  /** Where refusals and cancels are recorded and read from; without it they are not recorded. */
  readonly audit?: (AuditLog & AuditReader) | undefined;
  /** What `serverConfig` shows beside the version; default `development`, `info`. */
  readonly mode?: 'development' | 'production' | undefined;
  readonly logLevel?: string | undefined;
  /** Exact origins (`https://ci.example.com`) that browsers may call from; default none. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Requests a minute and client address; default none. */
  readonly rateLimits?: RateLimits | undefined;
  /** `SERVICE_TRUST_PROXY`: addresses and CIDR ranges; default none. */
  readonly trustProxy?: readonly string[] | undefined;
  /** `--playground`: an IDE at `/graphql/playground`; default off. */
  readonly playground?: boolean | undefined;
  /** `SERVICE_INTROSPECTION`: whether GraphQL shows its schema, suggestions for misspelt names included; default on. */
  readonly introspection?: boolean | undefined;
  /** `SERVICE_TRIGGER_WAIT_SECS`, 0 to 300; default 15. */
  readonly triggerWaitSecs?: number | undefined;
  /** Called whenever somebody who may have runs asks for one. */
  readonly onRunAsked?: (() => void) | undefined;
  /** Called with each file that is about to become a run, uses no extension, and has been read here: where its owner is at hand, it need not be again. */
  readonly onFileRead?: ((text: string, read: ParseResult) => void) | undefined;
  /** Triggers that wait for their run's end at a time; beyond it a trigger answers at once. Default 10,000. */
  readonly triggerWaitsMax?: number | undefined;
  /** How long an owner may take to answer before it is `UNAVAILABLE`, in milliseconds; default 10,000, the contract's; and the registry, by default 5,000. */
  readonly ownerMsMax?: number | undefined;
  /** Open log streams; beyond it 503. Default 10,000. */
  readonly streamsMax?: number | undefined;
  /** `SERVICE_STREAMS_PER_USER`: open log streams of a user and of an address; beyond it 429. Default 100. */
  readonly streamsPerUser?: number | undefined;
  /** Open connections of any kind; beyond it new ones are closed at once. Default 20,000. */
  readonly connectionsMax?: number | undefined;
  /** Further routes of this server: those of other services, where one process has them all. */
  readonly routes?:
    | readonly ((app: FastifyInstance, dependencies: RouteDependencies) => void | Promise<void>)[]
    | undefined;
  /** Where the files are that stages have kept, if in this very process; default: they are asked for on the bus. */
  readonly contents?: KeptContents | undefined;
  /** Where this process has the whole installation; default: it has not, and makes no backup. */
  readonly backups?: Backups | undefined;
  /** Whether the process has been told to stop: `/ready` says so while what is under way is finished. */
  readonly isStopping?: (() => boolean) | undefined;
  readonly log?: Log | undefined;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** What `GET /metrics` answers; default: there is no such route. */
  readonly metrics?: ((accept: string | undefined) => Promise<MetricsText>) | undefined;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}
