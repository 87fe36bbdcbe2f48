/**
 * The published JSON Schema of a pipeline file, made from that of extensions, whose stages are written alike, and from what only a
 * pipeline has. It says which keys there are and what form their values have: names that must exist, expressions and limits in
 * all are for the parser.
 */
import { PIPELINE_LIMITS } from '../src/index.ts';
import {
  APPROVAL_KEYS,
  CONCURRENCY_KEYS,
  GENERATES_KEYS,
  ID_TOKEN_KEYS,
  INPUT_KEYS,
  PIPELINE_KEYS,
  PULL_REQUEST_KEYS,
  PULL_REQUEST_TYPES,
  PUSH_KEYS,
  QUARANTINE_KEYS,
  SCHEDULE_KEYS,
  SECRET_KEYS,
  STAGE_KEYS,
  TOP_KEYS,
} from '../src/file/vocabulary.ts';

type Schema = Readonly<Record<string, unknown>>;

const TEXT = { type: ['string', 'number', 'boolean'] };
const BOOLEAN = { type: 'boolean' };
const VARIABLE = '^[A-Za-z_][A-Za-z0-9_]*$';
const SECRET = { type: 'string', pattern: '^[A-Z_][A-Z0-9_]*$', maxLength: PIPELINE_LIMITS.secretNameLengthMax };

/** `extension`: docs/extension.schema.json. */
export function pipelineSchema(extension: {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly $defs: Readonly<Record<string, Schema>>;
}): Schema {
  const { stage = {}, ...definitions } = extension.$defs;
  const env = (stage['properties'] as Readonly<Record<string, Schema>>)['env'] ?? {};
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A Penstock pipeline file, .pipeline.yaml',
    ...objectOf(TOP_KEYS, TOP, {
      env,
      inputs: { ...extension.properties['inputs'], maxProperties: PIPELINE_LIMITS.pipelineInputsMax },
    }),
    required: ['pipeline', 'stages'],
    $defs: {
      ...definitions,
      image: withAuth(definitions['image'] ?? {}),
      stage: {
        ...stage,
        description: 'What runs, and when; or who is to approve before others do.',
        oneOf: ['run', 'uses', 'approval'].map((key) => ({ required: [key] })),
        ...objectOf(STAGE_KEYS, STAGE, stage['properties'] as Readonly<Record<string, Schema>>),
      },
    },
  };
}

/** In a pipeline an image may name a secret; in an extension it must not. */
function withAuth(image: Schema): Schema {
  const [name, map] = image['oneOf'] as readonly [Schema, Schema & { readonly properties: Schema }];
  return { ...image, oneOf: [name, { ...map, properties: { ...map.properties, auth: SECRET } }] };
}

/** A key that nothing is said of here may hold anything. */
function objectOf(
  keys: readonly string[],
  own: Readonly<Record<string, Schema>>,
  more: Readonly<Record<string, Schema>> = {},
): Schema {
  const properties = Object.fromEntries(keys.map((key) => [key, own[key] ?? more[key] ?? {}]));
  return { type: 'object', additionalProperties: false, properties };
}

function oneOrMore(item: Schema): Schema {
  return { oneOf: [item, { type: 'array', minItems: 1, items: item }] };
}

const PATTERNS = oneOrMore({ type: 'string', minLength: 1 });

const CRON = {
  type: 'string',
  maxLength: PIPELINE_LIMITS.cronLengthMax,
  description: 'Minute, hour, day, month, weekday.',
};
const CRON_LINE = {
  oneOf: [
    CRON,
    {
      ...objectOf(SCHEDULE_KEYS, { cron: CRON, inputs: { type: 'object', additionalProperties: TEXT } }),
      required: ['cron'],
    },
  ],
};

const TOP: Readonly<Record<string, Schema>> = {
  engine: { ...TEXT, description: 'Any text; it has no meaning.' },
  pipeline: {
    ...objectOf(PIPELINE_KEYS, {
      name: { ...TEXT, description: 'What its runs are called.' },
      description: TEXT,
    }),
    required: ['name'],
  },
  on: {
    type: 'object',
    additionalProperties: false,
    description: 'For which events of a repository the file runs; without it for every push.',
    properties: {
      push: nullable(objectOf(PUSH_KEYS, Object.fromEntries(PUSH_KEYS.map((key) => [key, PATTERNS])))),
      pull_request: nullable(
        objectOf(PULL_REQUEST_KEYS, {
          branches: PATTERNS,
          paths: PATTERNS,
          types: oneOrMore({ enum: PULL_REQUEST_TYPES }),
          cancel_superseded: BOOLEAN,
        }),
      ),
    },
  },
  schedule: {
    description: 'When a server starts the pipeline by itself: cron lines of five fields, in UTC.',
    oneOf: [CRON_LINE, { type: 'array', maxItems: PIPELINE_LIMITS.schedulesMax, items: CRON_LINE }],
  },
  concurrency: {
    ...objectOf(CONCURRENCY_KEYS, { group: TEXT, cancel_in_progress: BOOLEAN }),
    required: ['group'],
    description: 'Runs of one group wait for each other.',
  },
  stages: {
    type: 'object',
    minProperties: 1,
    maxProperties: PIPELINE_LIMITS.stagesMax,
    additionalProperties: { $ref: '#/$defs/stage' },
  },
};

const ID_TOKEN = {
  ...objectOf(ID_TOKEN_KEYS, {
    audience: { type: 'string', minLength: 1, maxLength: PIPELINE_LIMITS.audienceLengthMax },
    variable: { type: 'string', pattern: VARIABLE },
  }),
  required: ['audience'],
};

const STAGE: Readonly<Record<string, Schema>> = {
  run: { ...oneOrMore(TEXT), description: 'A shell command, or a list of them that run in order.' },
  secrets: {
    description: 'Names of secrets, or a map of variables to them.',
    oneOf: [
      SECRET,
      { type: 'array', minItems: 1, maxItems: PIPELINE_LIMITS.secretsMax, items: SECRET },
      {
        type: 'object',
        minProperties: 1,
        maxProperties: PIPELINE_LIMITS.secretsMax,
        propertyNames: { pattern: VARIABLE },
        additionalProperties: {
          oneOf: [SECRET, { ...objectOf(SECRET_KEYS, { secret: SECRET, file: BOOLEAN }), required: ['secret'] }],
        },
      },
    ],
  },
  id_token: {
    description: 'For whom the stage gets a token that says who it is.',
    oneOf: [ID_TOKEN, { type: 'array', minItems: 1, maxItems: PIPELINE_LIMITS.idTokensMax, items: ID_TOKEN }],
  },
  generates: {
    description: 'The stage may add stages to its run, which name no other secrets and audiences than these.',
    oneOf: [
      BOOLEAN,
      objectOf(GENERATES_KEYS, {
        secrets: oneOrMore(SECRET),
        id_token: oneOrMore({ type: 'string', minLength: 1, maxLength: PIPELINE_LIMITS.audienceLengthMax }),
      }),
    ],
  },
  approval: { ...objectOf(APPROVAL_KEYS, {}), description: 'Who is to approve before what comes after it begins.' },
  quarantine: {
    ...objectOf(QUARANTINE_KEYS, { until: { type: 'string', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' }, reason: TEXT }),
    required: ['until'],
    description: 'The stage runs, and until that day its failure fails nothing.',
  },
};

function nullable(schema: Schema): Schema {
  return { oneOf: [{ type: 'null' }, schema] };
}

/** Every level of the schema that has keys, with those that the parser knows there. */
export const LEVELS: readonly (readonly [path: string, keys: readonly string[]])[] = [
  ['properties', TOP_KEYS],
  ['properties.pipeline.properties', PIPELINE_KEYS],
  ['properties.on.properties.push.oneOf.1.properties', PUSH_KEYS],
  ['properties.on.properties.pull_request.oneOf.1.properties', PULL_REQUEST_KEYS],
  ['properties.schedule.oneOf.0.oneOf.1.properties', SCHEDULE_KEYS],
  ['properties.concurrency.properties', CONCURRENCY_KEYS],
  ['properties.inputs.additionalProperties.oneOf.1.properties', INPUT_KEYS],
  ['$defs.stage.properties', STAGE_KEYS],
];
