/** `SERVICE_WEBHOOK_PIPELINE`: the server's own pipeline, which runs for every push. */
import { readFileSync } from 'node:fs';
import { systemReason } from '@penstock/errors';
import { ConfigurationError } from '@penstock/config';
import { diagnosticLine, parsePipeline, ServerTemplate, usesOf, type TemplateValues } from '@penstock/pipeline';

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
  // What it uses is resolved for each push; without that it cannot be judged here.
  if (usesOf(text).length > 0) return text;
  const parsed = parsePipeline(new ServerTemplate(text).filled(ANY_PUSH), { template: true });
  if (parsed.ok) return text;
  throw new ConfigurationError(parsed.diagnostics.map((each) => `SERVICE_WEBHOOK_PIPELINE: ${diagnosticLine(each)}`));
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError([`SERVICE_WEBHOOK_PIPELINE: ${path} cannot be read (${systemReason(error)})`]);
  }
}
