import { render } from 'preact';
import { App } from './app.tsx';
import { beginSession } from './session/session.ts';

await beginSession();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
