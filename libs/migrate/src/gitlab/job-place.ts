/** Where a job runs: its image, and the services beside it. */
import {
  take,
  takeAll,
  takeMap,
  takeText,
  takeTexts,
  textEntries,
  textsOf,
  type SourceMap,
  type SourceNode,
} from '../source.ts';
import { writtenOut, type JobContext } from './job-context.ts';

export function placeJob(context: JobContext, map: SourceMap): void {
  const { defaults, ledger, stage } = context;
  const image = take(map, 'image') ?? take(defaults, 'image');
  const written = image === undefined ? undefined : image.kind === 'map' ? takeText(image, 'name') : textsOf(image)[0];
  if (image?.kind === 'map') {
    const entrypoint = takeTexts(image, 'entrypoint').filter((word) => word !== '');
    if (entrypoint.length > 0) stage.entrypoint = [...entrypoint];
    for (const { key, line } of takeAll(image))
      if (!['name', 'entrypoint'].includes(key)) ledger.tell(line, `'${key}' of an image`);
  }
  if (written !== undefined && image !== undefined) {
    const name = writtenOut(written, context);
    if (name === undefined)
      ledger.tell(
        image.line,
        `the image ${written} of '${stage.name}'`,
        'an image is a plain text, or made of the values of a matrix',
      );
    else stage.image = name;
  }
  const services = take(map, 'services') ?? take(defaults, 'services');
  for (const item of services?.kind === 'list' ? services.items : []) addService(context, item);
}

function addService(context: JobContext, item: SourceNode): void {
  const { ledger, stage, variables: known } = context;
  const written = item.kind === 'map' ? takeText(item, 'name') : textsOf(item)[0];
  if (written === undefined) return;
  const image = writtenOut(written, context);
  const alias = item.kind === 'map' ? takeText(item, 'alias') : undefined;
  const variables = Object.fromEntries(
    (item.kind === 'map' ? textEntries(takeMap(item, 'variables')) : []).map(([name, { text }]) => [name, text]),
  );
  if (item.kind === 'map')
    for (const { key, line } of takeAll(item))
      if (!['name', 'alias', 'variables', 'pull_policy'].includes(key))
        ledger.tell(line, `'${key}' of the service ${written}`);
  if (image === undefined || /^docker:.*dind|docker:dind/.test(written)) {
    ledger.tell(
      item.line,
      `the service ${written} of '${stage.name}'`,
      'images are built by a runner whose machine has docker or podman',
    );
    return;
  }
  const host = (alias ?? written.split(':')[0]?.replaceAll('/', '-') ?? 'service')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .slice(0, 63)
    .replace(/^-+/, '');
  // A service gets the variables of the job there.
  const own = [...known].filter(
    ([name, text]) => /^(POSTGRES|MYSQL|MARIADB|MONGO|RABBITMQ|REDIS|ELASTIC|MINIO)_/.test(name) && !text.includes('$'),
  );
  stage.services[host] = { image, env: { ...Object.fromEntries(own), ...variables } };
}
