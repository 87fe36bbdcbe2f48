/** How the tests of a local run's stages went: counted for the table at its end. The files stay where the stage has put them. */
import { createHash } from 'node:crypto';
import { isKeptAfter, readReport } from '@penstock/artifacts';
import type { AttemptVerdict, StageUser } from '@penstock/executor';
import type { StageReport, StageWork } from '@penstock/run';

interface TestedLocally {
  readonly asked: StageWork['reports'];
  readonly verdict: AttemptVerdict;
  /** The stage's working folder. */
  readonly folder: string;
  readonly user: StageUser | undefined;
  readonly signal: AbortSignal;
  readonly mask: (text: string) => string;
  readonly remark: (text: string) => void;
}

/** The latest time that a date can be: here nothing expires. */
const TIME_MAX = 8_640_000_000_000_000;

/** Undefined: it has told of none. */
export async function localReport({ asked, verdict, ...left }: TestedLocally): Promise<StageReport | undefined> {
  if (asked === undefined || !isKeptAfter('always', verdict)) return undefined;
  const report = await readReport({ ...left, patterns: asked.junit }).catch((error: unknown) => {
    if (left.signal.aborted) return undefined;
    throw error;
  });
  if (report === undefined) return undefined;
  const { content, total, failed, skipped, durationMs } = report;
  const manifest = createHash('sha256').update(content).digest('hex');
  return { manifest, files: 1, bytes: content.length, total, failed, skipped, durationMs, expiresAt: TIME_MAX };
}
