import { describeAttacks } from './attack-ways.ts';
import { MACHINE_WAYS } from './programs.ts';

await describeAttacks(MACHINE_WAYS.filter((way) => way !== 'sandbox, root'));
