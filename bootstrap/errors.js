/**
 * What the bootstrap says when it cannot go on. Every problem is one sentence for a person, with the remedy in it;
 * anything else that is thrown is a bug of ours and keeps its stack.
 */
export class BootstrapProblem extends Error {
  name = 'BootstrapProblem';
}

/** A source of the broker that did not work; `message` is the short reason that the closing sentence joins. */
export class SourceFailed extends Error {
  name = 'SourceFailed';
}

/** Runs an entry script: a problem becomes one line and exit code 1. */
export async function runEntry(main) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(
      error instanceof BootstrapProblem ? `penstock: ${error.message}\n` : `${error.stack ?? error}\n`,
    );
    process.exit(1);
  }
}
