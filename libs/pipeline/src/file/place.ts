/**
 * Where a stage asks to run: `image`, `services`, `resources`, `network`. Read as they stand, and made part of a definition
 * once the values of a matrix are known: the only ones that may choose an image, since they are those of the file itself.
 */
import type { Expression, ExpressionScope, Template } from '../model/definition.ts';
import type { ImageDefinition, PlaceDefinition, ResourcesDefinition, ServiceDefinition } from '../model/place.ts';
import { renderTemplate } from '../expressions/evaluate.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { fieldOf, kindOf, mustBe, readDuration, readKeys, readList, readMap, readScalar, readWord } from './fields.ts';
import type { Field } from './fields.ts';
import { imageFault } from './image-name.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { formatBytes, parseBytes, parseProcessors } from '../model/quantity.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { readSecretName } from './secrets.ts';
import { hasExpression, readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import type { Span } from '../text/text-position.ts';
import { IMAGE_KEYS, PLACE_KEYS, RESOURCE_KEYS, SERVICE_KEYS } from './vocabulary.ts';
import type { MapEntry } from '../yaml/yaml-tree.ts';

interface ImageDraft {
  readonly name: Template;
  readonly span: Span;
  readonly path: string;
  readonly settings: Omit<ImageDefinition, 'name'>;
}

interface ServiceDraft {
  readonly name: string;
  readonly image: ImageDraft;
  readonly env: Environment;
  readonly ready: string | undefined;
  readonly readyTimeoutMs: number | undefined;
}

export interface PlaceDraft {
  readonly image?: ImageDraft | undefined;
  readonly services?: readonly ServiceDraft[] | undefined;
  readonly resources?: ResourcesDefinition | undefined;
  readonly network?: 'none' | undefined;
  /** Where each key stands. */
  readonly keys: ReadonlyMap<PlaceKey, Span>;
}

export type PlaceKey = (typeof PLACE_KEYS)[number];

export const NO_PLACE: PlaceDraft = { keys: new Map() };

export function readPlace(
  keys: ReadonlyMap<string, MapEntry>,
  path: string,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): PlaceDraft {
  const spans = new Map<PlaceKey, Span>();
  for (const key of PLACE_KEYS) {
    const entry = keys.get(key);
    if (entry !== undefined) spans.set(key, entry.keySpan);
  }
  if (spans.size === 0) return NO_PLACE;
  const read = <Value>(key: PlaceKey, use: (field: Field) => Value | undefined): Value | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : use(fieldOf(entry, path, reader.problems));
  };
  return {
    image: read('image', (field) => readImage(field, reader, sites)),
    services: read('services', (field) => readServices(field, reader, sites)),
    resources: read('resources', readResources),
    network: read('network', readNetwork),
    keys: spans,
  };
}

const AN_IMAGE = "the name of an image such as node:26, or a map with 'name'";

function readImage(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): ImageDraft | undefined {
  if (field.node.kind === 'scalar') return readImageName(field, AN_IMAGE, {}, reader, sites);
  const map = readMap(field, AN_IMAGE);
  if (map === undefined) return undefined;
  const { problems, path, name: called } = field;
  const keys = readKeys(map, IMAGE_KEYS, `in '${called}'`, path, problems);
  const inner = <Value>(key: (typeof IMAGE_KEYS)[number], use: (field: Field) => Value): Value | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : use(fieldOf(entry, path, problems));
  };
  if (!keys.has('name')) problems.add(map, path, `'${called}' has no 'name'`, `write '${called}: {name: node:26}'`);
  const settings = {
    ...optional('entrypoint', inner('entrypoint', readEntrypoint)),
    ...optional('user', inner('user', readUser)),
    ...optional(
      'pull',
      inner('pull', (value) => readWord(value, ['missing', 'always'] as const)),
    ),
    ...optional('secret', inner('auth', readAuth)),
  };
  return inner('name', (value) =>
    readImageName(value, 'the name of an image such as node:26', settings, reader, sites),
  );
}

/** The value is `user:password`, and stands in no file. */
function readAuth(field: Field): string | undefined {
  const node = readScalar(field, 'the name of a secret');
  return node === undefined ? undefined : readSecretName(node, field);
}

function readImageName(
  field: Field,
  wanted: string,
  settings: ImageDraft['settings'],
  reader: ExpressionReader,
  sites: ExpressionSite[],
): ImageDraft | undefined {
  const node = readScalar(field, wanted);
  if (node === undefined) return undefined;
  const { path, problems } = field;
  if (!hasExpression(node.text)) noteImageFault(node.text, node, path, problems);
  return { name: readTemplate(node, 'image', path, reader, sites), span: node, path, settings };
}

function noteImageFault(name: string, span: Span, path: string, problems: Problems): void {
  const fault = imageFault(name);
  if (fault !== undefined) problems.add(span, path, fault.message, fault.suggestion);
}

/** What the commands of the stage are handed to; an empty list is as good as none. */
function readEntrypoint(field: Field): string[] | undefined {
  const nodes = readList(field, 'a program or a list of a program and its arguments', PIPELINE_LIMITS.entrypointMax);
  if (nodes === undefined) return undefined;
  for (const node of nodes) {
    if (node.text.length > PIPELINE_LIMITS.pathLengthMax || /\p{Cc}/u.test(node.text) || hasExpression(node.text))
      field.problems.add(
        node,
        field.path,
        `an argument of 'entrypoint' has at most ${PIPELINE_LIMITS.pathLengthMax} characters on one line, and no expression`,
      );
  }
  return nodes.map(({ text }) => text).filter((text) => text !== '');
}

function readUser(field: Field): string | undefined {
  const node = readScalar(field, 'a user inside the image, by name or number');
  if (node === undefined) return undefined;
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/.test(node.text)) return node.text;
  field.problems.add(
    node,
    field.path,
    `${quoted(node.text)} cannot be a user: a name or a number, and a group behind ':' where one is wanted`,
  );
  return undefined;
}

function readServices(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): ServiceDraft[] | undefined {
  const { problems, path } = field;
  const map = readMap(field, 'a map of names to services');
  if (map === undefined) return undefined;
  if (map.entries.length === 0) problems.add(map, path, "'services' has no services");
  if (map.entries.length > PIPELINE_LIMITS.servicesMax)
    problems.add(map, path, `'services' has more than ${PIPELINE_LIMITS.servicesMax} services`);
  return map.entries.slice(0, PIPELINE_LIMITS.servicesMax).flatMap((entry) => {
    if (!/^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(entry.key) || entry.key === 'localhost')
      problems.add(
        entry.keySpan,
        path,
        `${quoted(entry.key)} cannot be the name of a service: it is a host's name, of lower-case letters, digits and '-'`,
        lowerCaseHint(entry.key),
      );
    return readService(entry, path, reader, sites) ?? [];
  });
}

function lowerCaseHint(name: string): string | undefined {
  const meant = name.toLowerCase().replaceAll('_', '-');
  return meant !== name && /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(meant) ? `did you mean '${meant}'?` : undefined;
}

function readService(
  entry: MapEntry,
  path: string,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): ServiceDraft | undefined {
  const { problems } = reader;
  const field = fieldOf(entry, path, problems);
  if (entry.value.kind !== 'map') {
    const { value } = entry;
    const meant = value.kind === 'scalar' && value.text !== '' && imageFault(value.text) === undefined;
    problems.add(
      value,
      field.path,
      `the service ${quoted(entry.key)} must be a map with 'image', not ${kindOf(value)}`,
      meant ? `write '${entry.key}: {image: ${value.text}}'` : undefined,
    );
    return undefined;
  }
  const keys = readKeys(entry.value, SERVICE_KEYS, `in service ${quoted(entry.key)}`, field.path, problems);
  const inner = <Value>(key: (typeof SERVICE_KEYS)[number], use: (field: Field) => Value): Value | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : use(fieldOf(found, field.path, problems));
  };
  const image = inner('image', (value) => readImage(value, reader, sites));
  if (!keys.has('image')) problems.add(entry.keySpan, field.path, `the service ${quoted(entry.key)} has no 'image'`);
  const env = inner('env', (value) => readEnvironment(value, 'stage-env', reader, sites));
  const ready = inner('ready', readReady);
  const timeout = keys.get('ready_timeout');
  if (timeout !== undefined && !keys.has('ready'))
    problems.add(
      timeout.keySpan,
      field.path,
      "'ready_timeout' stands without 'ready'",
      "'ready' is a command that succeeds once the service may be used",
    );
  const readyTimeoutMs = inner('ready_timeout', (value) =>
    readDuration(value, PIPELINE_LIMITS.timeoutMsMin, PIPELINE_LIMITS.readyTimeoutMsMax),
  );
  if (image === undefined) return undefined;
  return { name: entry.key, image, env: env ?? new Map<string, Template>(), ready, readyTimeoutMs };
}

/** It runs inside the service, whose environment has what it needs: no value of the run has to come in. */
function readReady(field: Field): string | undefined {
  const node = readScalar(field, 'a command such as pg_isready');
  if (node === undefined) return undefined;
  const fault =
    node.text.trim() === ''
      ? 'is an empty command'
      : hasExpression(node.text)
        ? 'cannot hold an expression'
        : node.text.includes('\0')
          ? 'has a NUL character'
          : node.text.length > PIPELINE_LIMITS.readyLengthMax
            ? `is longer than ${PIPELINE_LIMITS.readyLengthMax} characters`
            : undefined;
  if (fault === undefined) return node.text;
  field.problems.add(
    node,
    field.path,
    `'ready' ${fault}`,
    hasExpression(node.text) ? "give the service the value by its 'env', and use $NAME here" : undefined,
  );
  return undefined;
}

function readResources(field: Field): ResourcesDefinition | undefined {
  const map = readMap(field, "a map with 'cpu' or 'memory'");
  if (map === undefined) return undefined;
  const { problems, path } = field;
  const keys = readKeys(map, RESOURCE_KEYS, "in 'resources'", path, problems);
  if (map.entries.length === 0) problems.add(map, path, "'resources' has neither 'cpu' nor 'memory'");
  const [cpu, memory] = [keys.get('cpu'), keys.get('memory')];
  return {
    ...optional('cpu', cpu && readCpu(fieldOf(cpu, path, problems))),
    ...optional('memoryBytes', memory && readMemory(fieldOf(memory, path, problems))),
  };
}

function readCpu(field: Field): number | undefined {
  const { node } = field;
  const value = node.kind === 'scalar' ? parseProcessors(node.text) : undefined;
  if (value !== undefined && value >= PIPELINE_LIMITS.cpuMin && value <= PIPELINE_LIMITS.cpuMax) return value;
  mustBe(
    field,
    `a number of processors such as 2, 0.5 or 500m, from ${PIPELINE_LIMITS.cpuMin * 1000}m to ${PIPELINE_LIMITS.cpuMax}`,
  );
  return undefined;
}

function readMemory(field: Field): number | undefined {
  const { node } = field;
  const { memoryBytesMin: min, memoryBytesMax: max } = PIPELINE_LIMITS;
  const value = node.kind === 'scalar' ? parseBytes(node.text) : undefined;
  if (value !== undefined && value >= min && value <= max) return value;
  mustBe(field, `a count of bytes such as 512Mi or 4Gi, from ${formatBytes(min)} to ${formatBytes(max)}`, () =>
    node.kind === 'scalar' ? unitHint(node.text) : undefined,
  );
  return undefined;
}

function unitHint(text: string): string | undefined {
  const [, count, unit] = /^([0-9]{1,6})\s*([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  if (count === undefined) return undefined;
  return unit === '' ? `add the unit: '${count}Mi' or '${count}Gi'` : `did you mean '${count}${unit?.toUpperCase()}i'?`;
}

function readNetwork(field: Field): 'none' | undefined {
  const { node } = field;
  if (node.kind === 'scalar' && node.text === 'none') return 'none';
  mustBe(field, "'none'", 'leave it out for a stage that may use the network');
  return undefined;
}

/** Whether the values of a matrix, or inputs, may choose an image. */
export function hasChosenImage({ image, services = [] }: PlaceDraft): boolean {
  const images = [...(image === undefined ? [] : [image]), ...services.map((service) => service.image)];
  return images.some(({ name }) => name.some((part) => typeof part !== 'string'));
}

/** Where it names a secret for an image: an extension must not. */
export function imageSecretSpans({ image, services = [] }: PlaceDraft): readonly Span[] {
  return [image, ...services.map((service) => service.image)].flatMap((each) =>
    each?.settings.secret === undefined ? [] : [each.span],
  );
}

/** With the values of a combination. `site`: where problems are shown, absent: where the name stands. */
export function placeOf(
  draft: PlaceDraft,
  { matrix, template, environment, problems, site }: PlaceValues,
): PlaceDefinition<Template> | undefined {
  if (draft.keys.size === 0) return undefined;
  const scope: ExpressionScope = { ...NOTHING_KNOWN, matrix };
  const imageOf = ({ name, span, path, settings }: ImageDraft): ImageDefinition => {
    const known = template(name);
    const text = renderTemplate(known, scope);
    if (!known.every((part) => typeof part === 'string' || isOfMatrix(part.expression)))
      problems.add(
        site ?? span,
        path,
        'this image would depend on a value that is known only while the run goes on',
        'give the input a text, or a value of the matrix',
      );
    else if (known.length !== 1 || typeof name[0] !== 'string') noteImageFault(text, site ?? span, path, problems);
    return { name: text, ...settings };
  };
  const { image, services, resources, network } = draft;
  return {
    ...(image === undefined ? {} : { image: imageOf(image) }),
    ...(services === undefined
      ? {}
      : {
          services: services.map(({ name, image: own, env, ready, readyTimeoutMs }): ServiceDefinition<Template> => ({
            name,
            image: imageOf(own),
            env: environment(env),
            ...optional('ready', ready),
            ...optional('readyTimeoutMs', readyTimeoutMs),
          })),
        }),
    ...optional('resources', resources),
    ...optional('network', network),
  };
}

interface PlaceValues {
  readonly matrix: Readonly<Record<string, string>>;
  /** What names mean at this level, put in their place. */
  readonly template: (template: Template) => Template;
  /** The variables of a service as a definition holds them. */
  readonly environment: (env: Environment) => Readonly<Record<string, Template>>;
  readonly problems: Problems;
  readonly site: Span | undefined;
}

/** Nothing of the run decides it. */
function isOfMatrix(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
      return true;
    case 'path':
      return expression.path[0] === 'matrix';
    case 'text':
      return expression.parts.every((part) => typeof part === 'string' || isOfMatrix(part.expression));
    case 'call':
      return false;
    case 'not':
      return isOfMatrix(expression.operand);
    case 'binary':
      return isOfMatrix(expression.left) && isOfMatrix(expression.right);
  }
}

const NOTHING_KNOWN: ExpressionScope = {
  stages: {},
  matrix: {},
  env: {},
  run: {},
  pipeline: {},
  webhook: {},
  inputs: {},
  success: true,
  failure: false,
};

function optional<Key extends string, Value>(key: Key, value: Value | undefined): { readonly [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [K in Key]?: Value };
}
