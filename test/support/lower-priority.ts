import { constants, setPriority } from 'node:os';

// This process, and those that it starts, get what the tests beside them leave of the processors.
setPriority(constants.priority.PRIORITY_LOW);
