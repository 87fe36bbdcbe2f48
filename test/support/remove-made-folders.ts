import { afterAll } from 'vitest';
import { removeMadeFolders } from './made-folders.ts';

// Set up before all others, and so the last to be called.
afterAll(removeMadeFolders);
