/** Mutants of the rule about Pods, P36, as far as its tests need no cluster. */
import type { Check, Mutant } from '../mutant.ts';

const state: Check = { tests: 'libs/executor-kubernetes/test/pod-state.test.ts' };
const manifest: Check = { tests: 'libs/executor-kubernetes/test/pod-manifest.test.ts' };

export const pods: readonly Mutant[] = [
  {
    rule: 'P36',
    breaks: 'counts a stage as lost that its guard has reported before its session was over',
    file: 'libs/executor-kubernetes/src/pod/ending.ts',
    find: "if (isAbandoned && done?.cause !== 'exit')",
    replace: 'if (isAbandoned)',
    noticedBy: [state],
  },
  {
    rule: 'P36',
    breaks: 'takes what ended by itself for taken away, because it is not in the cluster any more',
    file: 'libs/executor-kubernetes/src/pod/ending.ts',
    find: '(isGone && terminated === undefined)',
    replace: 'isGone',
    noticedBy: [state],
  },
  {
    rule: 'P36',
    breaks: 'lets a node start the stage of a Pod a second time',
    file: 'libs/executor-kubernetes/src/pod/pod-manifest.ts',
    find: "restartPolicy: 'Never',",
    replace: "restartPolicy: 'OnFailure',",
    noticedBy: [manifest],
  },
  {
    rule: 'P36',
    breaks: 'ends a Pod by its last deadline before the stage has had its time',
    file: 'libs/executor-kubernetes/src/pod/pod-manifest.ts',
    find: 'Math.ceil((setupMs + spec.timeoutMs + graceMs + leavingMsOf(spec)) / 1000) + 60',
    replace: 'Math.ceil(spec.timeoutMs / 1000) + 60',
    noticedBy: [manifest],
  },
  {
    rule: 'P36',
    breaks: 'takes up an attempt that may have been lost, and run elsewhere, while its runner was away',
    file: 'services/runner/src/runner.ts',
    find: 'if (!isHeld || this.#outbox.has(job)) return false;',
    replace: 'if (this.#outbox.has(job)) return isHeld;',
    noticedBy: [{ tests: 'services/runner/test/taken-up.test.ts', titles: ['may be lost already'] }],
  },
  {
    rule: 'P36',
    breaks: 'makes a Pod anew that has begun and is gone',
    file: 'libs/executor-kubernetes/src/stage-pod.ts',
    find: 'exit = this.#wasBegun ? null : await this.#create();',
    replace: 'exit = await this.#create();',
    noticedBy: [{ tests: 'libs/executor-kubernetes/test/taken-up.test.ts', titles: ['not made anew'] }],
  },
];
