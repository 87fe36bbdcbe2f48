import { describeAttacks } from './attack-ways.ts';

// One way of six in which stages can run; `attacks.long.test.ts` has the others.
await describeAttacks(['sandbox, root']);
