/** Profiles of processes as one tree, and the page that shows it. */
import { describe, expect, it } from 'vitest';
import { renderFlameGraph } from './flame-graph.ts';
import { addProfile, longest, newFrame, type CpuProfile, type Frame } from './profiles.ts';

const CHECKOUT = '/checkout';

/** 2 ms in `inner` by way of `outer`, 1 ms in `outer` itself, 5 ms with nothing to do. */
const PROFILE: CpuProfile = {
  nodes: [
    node(1, '(root)', '', 0, [2, 3]),
    node(2, 'outer', `file://${CHECKOUT}/libs/run/src/step.ts`, 9, [4]),
    node(3, '(idle)', '', 0, []),
    node(4, 'inner', `file://${CHECKOUT}/node_modules/some/index.js`, 4, []),
  ],
  samples: [4, 2, 3, 1],
  timeDeltas: [0, 2_000, 1_000, 5_000],
};

describe('profiles', () => {
  it('tell of each function what it took itself, and with what it calls', () => {
    const [server] = childrenOf(tree());
    const [outer] = childrenOf(server);
    expect(outer).toMatchObject({ name: 'outer', place: 'libs/run/src/step.ts:10', selfMs: 1, totalMs: 3 });
    expect(childrenOf(outer)).toMatchObject([{ name: 'inner', place: 'some/index.js:5', selfMs: 2 }]);
  });

  it('leave out the time in which there was nothing to do', () => {
    expect(tree().totalMs).toBe(3);
  });

  it('of processes of one name are one', () => {
    const whole = tree();
    addProfile(whole, 'server', PROFILE, CHECKOUT);
    addProfile(whole, 'client', PROFILE, CHECKOUT);
    expect(childrenOf(whole).map(({ name, totalMs }) => [name, totalMs])).toEqual([
      ['server', 6],
      ['client', 3],
    ]);
    expect(longest(whole, 1)).toMatchObject([{ name: 'inner', selfMs: 6 }]);
  });
});

describe('a flame graph', () => {
  it('has a box for each function, as wide as its share, and the rest of the page is no part of a name', () => {
    const whole = newFrame('all', '');
    addProfile(whole, 'server', { ...PROFILE, nodes: PROFILE.nodes.map(asMarkup) }, CHECKOUT);
    const page = renderFlameGraph('runs', whole);
    expect(page).toContain('left:0.000%;width:66.667%;top:54px');
    expect(page).toContain('&lt;inner>');
    expect(page).not.toContain('<inner');
  });

  it('of nothing is a page all the same', () => {
    expect(renderFlameGraph('runs', newFrame('all', ''))).toContain('<main>');
  });
});

function tree(): Frame {
  const whole = newFrame('all', '');
  addProfile(whole, 'server', PROFILE, CHECKOUT);
  return whole;
}

function childrenOf(frame: Frame | undefined): Frame[] {
  return [...(frame?.children.values() ?? [])];
}

function node(
  id: number,
  functionName: string,
  url: string,
  lineNumber: number,
  children: readonly number[],
): CpuProfile['nodes'][number] {
  return { id, callFrame: { functionName, url, lineNumber }, children };
}

function asMarkup(each: CpuProfile['nodes'][number]): CpuProfile['nodes'][number] {
  const { functionName } = each.callFrame;
  return functionName === 'inner' ? { ...each, callFrame: { ...each.callFrame, functionName: '<inner>' } } : each;
}
