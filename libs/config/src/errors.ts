import { TaggedError } from '@penstock/errors';

/** One message for everything that is wrong with a configuration, so that a start is tried again once and not five times. */
export class ConfigurationError extends TaggedError {
  readonly tag = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      problems.length === 1
        ? `the configuration has a problem: ${problems[0]}`
        : `the configuration has ${problems.length} problems:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    );
    this.problems = problems;
  }
}
