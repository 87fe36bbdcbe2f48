/** `SERVICE_WEBHOOK_PIPELINE`: the server's own pipeline, which runs for every push. */
import { readFileSync } from 'node:fs';
import { systemReason } from '@penstock/errors';
import { ConfigurationError } from '@penstock/config';
import { diagnosticLine, parsePipeline, ServerTemplate, usesOf, type TemplateValues } from '@penstock/pipeline';

const NAME_IN_EXPRESSION = /\bpipeline\s*\.\s*name\b/u;

/** To look at the file with. */
const ANY_PUSH: TemplateValues = {
  repository: 'owner/repository',
  ref: 'refs/heads/main',
  commit: '0'.repeat(40),
  provider: 'git_host_a',
};

/** A path, or the text itself where it holds a newline. Throws ConfigurationError for one that cannot be read or is no pipeline. */
export function readTemplate(given: string | undefined): string | null {
  if (given === undefined) return null;
  const text = given.includes('\n') ? given : readText(given);
  refuseHandedOn(text);
  // What it uses is resolved for each push; without that it cannot be judged here.
  if (usesOf(text).length > 0) return text;
  const parsed = parsePipeline(new ServerTemplate(text).filled(ANY_PUSH), { template: true });
  if (parsed.ok) return text;
  throw new ConfigurationError(parsed.diagnostics.map((each) => `SERVICE_WEBHOOK_PIPELINE: ${diagnosticLine(each)}`));
}

/** Expressions take a pipeline's name for the file's own word, which a script may hand to any program. */
function refuseHandedOn(text: string): void {
  if (!new ServerTemplate(text).isNamedByPush) return;
  const refuse = (why: string): never => {
    throw new ConfigurationError([`SERVICE_WEBHOOK_PIPELINE: ${why}`]);
  };
  if (NAME_IN_EXPRESSION.test(text))
    refuse("where 'pipeline.name' holds webhook.*, no expression can use it; use webhook.* there, too");
  if (usesOf(text).length > 0)
    refuse("where 'pipeline.name' holds webhook.*, nothing can be used by 'uses': an extension may hand the name on");
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError([`SERVICE_WEBHOOK_PIPELINE: ${path} cannot be read (${systemReason(error)})`]);
  }
}
