/** Extensions as clients find, publish and yank them; all of it is asked of the registry. */
import type { Bus } from '@penstock/bus';
import type {
  ExtensionKeyView,
  ExtensionView,
  LockEntry,
  PublishAnswer,
  PublishRequest,
  RegisterKeyRequest,
  ResolveAnswer,
  ResolveRequest,
  SearchRequest,
  VersionsRequest,
  VersionView,
  Visibility,
  YankRequest,
} from '@penstock/extension';
import { BadUserInput, Unauthenticated } from '@penstock/errors';
import { actorOf, onBehalfOf, requireScope, type Caller, type OnBehalf } from '@penstock/identity';
import type { RunView } from '@penstock/run';
import { callService } from '@penstock/service';
import type { AuditLog } from '@penstock/store';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface RegistryModuleOptions {
  readonly bus: Bus;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  type RegistryExtension {
    "<category>/<name>"
    id: String!
    name: String!
    description: String!
    "build, test, deploy, notify, security or utility"
    category: String!
    downloadCount: String!
    createdAt: String!
    updatedAt: String!
    "public, or private: seen by its owner only (additional)."
    visibility: String!
    "By precedence, of those not yanked (additional)."
    latestVersion: String
  }

  type ExtensionVersion {
    extensionId: String!
    version: String!
    "SHA-256 of the package in lower-case hex: GET /registry/packages/<packageHash>"
    packageHash: String!
    sizeBytes: String!
    readme: String
    changelog: String
    "New resolutions pass it over; locks that have it still work."
    yanked: Boolean!
    publishedAt: String!
    "It was published with a signature of its owner (additional)."
    signed: Boolean!
  }

  type PublishResult {
    "False: this version with these bytes was there before."
    created: Boolean!
    version: ExtensionVersion!
    extension: RegistryExtension!
  }

  type ResolvedExtension {
    uses: String!
    id: String!
    version: String!
    hash: String!
    "The text of its extension.yaml."
    manifest: String!
  }

  input LockEntryInput {
    uses: String!
    id: String!
    version: String!
    hash: String!
  }

  type ExtensionKey {
    id: String!
    name: String!
    "Ed25519: base64 of the 32 raw bytes."
    publicKey: String!
    createdAt: String!
  }

  type LockedExtension {
    uses: String!
    id: String!
    version: String!
    "SHA-256 of its package."
    hash: String!
  }

  extend type PipelineRun {
    "What the 'uses' of its file were resolved to, those of extensions among them: the run's lock (additional)."
    extensions: [LockedExtension!]!
  }

  extend type Query {
    "Public extensions and the caller's own, best first; without 'query' the most downloaded first. 'limit' is 20 where it is absent, at most 100."
    extensions(query: String, category: String, limit: Int): [RegistryExtension!]!
    "Null: there is none that this caller may see."
    extension(id: String): RegistryExtension
    "The highest version first, at most 100. Either spelling of the argument."
    extensionVersions(extension_id: String, extensionId: String, limit: Int): [ExtensionVersion!]!
    "Each 'uses' with the version that it stands for now, and those that they use themselves (additional)."
    resolveExtensions(uses: [String!], lock: [LockEntryInput!]): [ResolvedExtension!]!
    "The public keys that the caller's packages may be signed with (additional)."
    extensionKeys: [ExtensionKey!]!
  }

  extend type Mutation {
    """
    Makes a package that was uploaded by PUT /registry/packages/<sha256> a version of its extension. 'visibility' is public or
    private; without it an extension stays what it is, and a new one is public. 'signature': Ed25519 in base64 (additional).
    """
    publishExtension(packageHash: String, visibility: String, changelog: String, signature: String): PublishResult!
    "Or takes it back with 'yanked: false' (additional)."
    yankExtensionVersion(id: String, version: String, yanked: Boolean): ExtensionVersion!
    "Base64 of the 32 raw bytes, or PEM (additional)."
    registerExtensionKey(publicKey: String, name: String): ExtensionKey!
    "What it has signed counts as unsigned from now on (additional)."
    removeExtensionKey(id: String): Boolean!
  }
`;

const LIMIT = { default: 20, max: 100 } as const;
const VERSIONS_LIMIT = { default: 100, max: 100 } as const;

type Texts = Pick<VersionView, 'readme' | 'changelog'>;
/** A version whose texts may still have to be read: most lists do not want them. */
type Version = Omit<VersionView, keyof Texts> & { texts(): Promise<Texts> };

export function registryModule({ bus, audit, now }: RegistryModuleOptions): GraphqlModule {
  const ask = <Req, Rep>(verb: string, request: Req): Promise<Rep> =>
    callService<Req, Rep>(bus, 'registry', verb, request);
  const extensionOf = (caller: OnBehalf, id: string): Promise<ExtensionView | null> => ask('extension', { caller, id });

  const versionsOf = async (request: Omit<VersionsRequest, 'texts'>): Promise<Version[]> => {
    const versions = await ask<VersionsRequest, VersionView[]>('versions', { ...request, texts: false });
    let read: Promise<Map<string, Texts>> | undefined;
    const texts = async (version: string): Promise<Texts> => {
      read ??= ask<VersionsRequest, VersionView[]>('versions', { ...request, texts: true }).then(
        (all) => new Map(all.map((each) => [each.version, each])),
      );
      return (await read).get(version) ?? { readme: null, changelog: null };
    };
    return versions.map((version) => ({ ...version, texts: () => texts(version.version) }));
  };
  const noted = (context: GraphqlContext, action: string, target: string): void =>
    audit.record({ at: now(), actor: actorOf(context.caller), action, target, outcome: 'ok', ip: context.address });

  return {
    sdl: SDL,
    resolvers: {
      PipelineRun: { extensions: ({ extensions }: RunView) => extensions ?? [] },
      RegistryExtension: { downloadCount: ({ downloadCount }: ExtensionView) => String(downloadCount) },
      ExtensionVersion: {
        sizeBytes: ({ sizeBytes }: Version) => String(sizeBytes),
        readme: async (version: Version) => (await version.texts()).readme,
        changelog: async (version: Version) => (await version.texts()).changelog,
      },
      Query: {
        extensions: (
          _: unknown,
          args: { query?: Maybe<string>; category?: Maybe<string>; limit?: Maybe<number> },
          { caller }: GraphqlContext,
        ) =>
          ask<SearchRequest, ExtensionView[]>('search', {
            caller: readerOf(caller),
            query: optional(args.query),
            category: optional(args.category),
            limit: limitOf(args.limit, LIMIT),
          }),
        extension: (_: unknown, args: { id?: Maybe<string> }, { caller }: GraphqlContext) =>
          extensionOf(readerOf(caller), given(args.id, 'id')),
        extensionVersions: (
          _: unknown,
          args: { extension_id?: Maybe<string>; extensionId?: Maybe<string>; limit?: Maybe<number> },
          { caller }: GraphqlContext,
        ) => {
          const { extension_id: documented, extensionId: also } = args;
          if (documented != null && also != null && documented !== also)
            throw new BadUserInput("'extension_id' and 'extensionId' name different extensions.");
          return versionsOf({
            caller: readerOf(caller),
            id: given(documented ?? also, 'extension_id'),
            limit: limitOf(args.limit, VERSIONS_LIMIT),
          });
        },
        resolveExtensions: async (
          _: unknown,
          args: { uses?: Maybe<string[]>; lock?: Maybe<LockEntry[]> },
          { caller }: GraphqlContext,
        ) => {
          const uses = (args.uses ?? []).map((each) => each.toWellFormed());
          return (
            await ask<ResolveRequest, ResolveAnswer>('resolve', {
              caller: readerOf(caller),
              uses,
              ...(args.lock == null ? {} : { lock: args.lock }),
            })
          ).extensions;
        },
        extensionKeys: (_: unknown, _args: unknown, { caller }: GraphqlContext) =>
          ask<unknown, ExtensionKeyView[]>('keys', { caller: publisherOf(caller) }),
      },
      Mutation: {
        publishExtension: async (
          _: unknown,
          args: Record<'packageHash' | 'visibility' | 'changelog' | 'signature', Maybe<string>>,
          context: GraphqlContext,
        ) => {
          const caller = publisherOf(context.caller);
          const answer = await ask<PublishRequest, PublishAnswer>('publish', {
            caller,
            packageHash: given(args.packageHash, 'packageHash'),
            visibility: visibilityOf(args.visibility),
            changelog: optional(args.changelog),
            signature: optional(args.signature),
          });
          const { version, created } = answer;
          if (created) noted(context, 'extension.publish', `${version.extensionId}@${version.version}`);
          return { created, version: withTexts(version), extension: await extensionOf(caller, version.extensionId) };
        },
        yankExtensionVersion: async (
          _: unknown,
          args: { id?: Maybe<string>; version?: Maybe<string>; yanked?: Maybe<boolean> },
          context: GraphqlContext,
        ) => {
          const request = {
            caller: publisherOf(context.caller),
            id: given(args.id, 'id'),
            version: given(args.version, 'version'),
            yanked: args.yanked ?? true,
          };
          const version = await ask<YankRequest, VersionView>('yank', request);
          noted(
            context,
            request.yanked ? 'extension.yank' : 'extension.unyank',
            `${version.extensionId}@${version.version}`,
          );
          return withTexts(version);
        },
        registerExtensionKey: async (
          _: unknown,
          args: { publicKey?: Maybe<string>; name?: Maybe<string> },
          context: GraphqlContext,
        ) => {
          const key = await ask<RegisterKeyRequest, ExtensionKeyView>('registerKey', {
            caller: publisherOf(context.caller),
            publicKey: given(args.publicKey, 'publicKey'),
            name: optional(args.name),
          });
          noted(context, 'extension.key.add', key.id);
          return key;
        },
        removeExtensionKey: async (_: unknown, args: { id?: Maybe<string> }, context: GraphqlContext) => {
          const id = given(args.id, 'id');
          const removed = await ask<unknown, true>('removeKey', { caller: publisherOf(context.caller), id });
          noted(context, 'extension.key.remove', id);
          return removed;
        },
      },
    },
  };
}

/** Everybody sees public extensions; the registry decides what else a caller sees. */
function readerOf(caller: Caller): OnBehalf {
  requireScope(caller, 'read');
  return onBehalfOf(caller);
}

function publisherOf(caller: Caller): OnBehalf {
  if (caller.writeTenant === null) throw new Unauthenticated();
  requireScope(caller, 'publish');
  return onBehalfOf(caller);
}

function withTexts(version: VersionView): Version {
  return { ...version, texts: async () => version };
}

function visibilityOf(value: Maybe<string>): Visibility | undefined {
  if (value === null || value === undefined) return undefined;
  const known = value.toLowerCase();
  if (known !== 'public' && known !== 'private') throw new BadUserInput("'visibility' is to be public or private.");
  return known;
}

function optional(value: Maybe<string>): string | undefined {
  return value === null || value === undefined ? undefined : value.toWellFormed();
}
