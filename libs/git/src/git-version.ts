/** Whether there is a git here that can do what is asked of it. */
import { GitError } from './errors.ts';
import { runGit } from './git-command.ts';

/** The first that can be told what a name resolves to (`http.curloptResolve`); without that a name could be looked up twice. */
const FLOOR = [2, 37] as const;
const ASK_MS_MAX = 10_000;

/** @throws GitError `git_unusable` */
export async function assertGitUsable(cwd: string): Promise<void> {
  const said = (await runGit({ args: ['version'], cwd, timeoutMs: ASK_MS_MAX })).toString('latin1').trim();
  const [, major = 0, minor = 0] = (/^git version (\d+)\.(\d+)/u.exec(said) ?? []).map(Number);
  if (major > FLOOR[0] || (major === FLOOR[0] && minor >= FLOOR[1])) return;
  throw new GitError(
    'git_unusable',
    `repositories need git ${FLOOR.join('.')} or newer where the service runs, and there is: ${said}`,
  );
}
