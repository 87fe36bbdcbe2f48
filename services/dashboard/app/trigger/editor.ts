/**
 * The editor of a pipeline file: CodeMirror, in a shadow root of its own, where its styles are sheets of the document and no `<style>`
 * elements, which the page's policy forbids. Loaded when the page with it is opened, and by nobody else.
 */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, syntaxHighlighting, syntaxTree } from '@codemirror/language';
import { lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import type { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tagHighlighter, tags } from '@lezer/highlight';

export interface Finding {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly isWarning: boolean;
}

export interface Editor {
  show(findings: readonly Finding[]): void;
  goTo(line: number, column: number): void;
  /** To where it stands in the file; nowhere where it is not found. */
  goToStage(name: string): void;
  close(): void;
}

export interface EditorOptions {
  readonly host: HTMLElement;
  readonly text: string;
  /** The names of the file's inputs, as far as it can be read. */
  onChange(text: string, inputs: readonly string[]): void;
}

const colors = tagHighlighter([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], class: 'is-name' },
  { tag: [tags.string, tags.special(tags.string)], class: 'is-text' },
  { tag: [tags.number, tags.bool, tags.keyword], class: 'is-word' },
  { tag: tags.comment, class: 'is-comment' },
]);

const look = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--raised)', fontSize: '13px', minHeight: '24rem' },
  '.cm-content, .cm-gutters': { fontFamily: 'var(--mono)' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.is-name': { color: 'var(--link)' },
  '.is-text': { color: 'var(--good)' },
  '.is-word': { color: 'var(--busy)' },
  '.is-comment': { color: 'var(--faint)', fontStyle: 'italic' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--faint)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine': { backgroundColor: 'transparent' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  // The library's own marks are pictures in addresses, which the page's policy forbids.
  '.cm-lintRange-error, .cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad)',
  },
  '.cm-lintPoint:after': { borderBottomColor: 'var(--bad)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line)' },
});

export function openEditor({ host, text, onChange }: EditorOptions): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const view = new EditorView({
    doc: text,
    root,
    parent: root,
    extensions: [
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      highlightActiveLine(),
      yaml(),
      syntaxHighlighting(colors),
      // Tab goes on to what comes after the editor: a keyboard is not to be caught in it.
      keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      EditorView.contentAttributes.of({ 'aria-label': 'Pipeline file' }),
      EditorView.updateListener.of(({ docChanged, startState, state }) => {
        // The file is read in the background too, so that what is found in it may come without a change of its text.
        if (docChanged || syntaxTree(startState) !== syntaxTree(state)) onChange(state.doc.toString(), inputsOf(state));
      }),
      look,
    ],
  });
  onChange(text, inputsOf(view.state));
  return {
    show: (findings) =>
      view.dispatch(
        setDiagnostics(
          view.state,
          findings.map((finding) => diagnosticOf(view.state, finding)),
        ),
      ),
    goTo: (line, column) => {
      view.dispatch({ selection: { anchor: offsetOf(view.state, line, column) }, scrollIntoView: true });
      view.focus();
    },
    goToStage: (name) => {
      const found = keysBelow(view.state, 'stages').find(({ text: key }) => key === name);
      if (found === undefined) return;
      view.dispatch({ selection: { anchor: found.from }, scrollIntoView: true });
      view.focus();
    },
    close: () => view.destroy(),
  };
}

function diagnosticOf(state: EditorState, { line, column, message, isWarning }: Finding): Diagnostic {
  const from = offsetOf(state, line, column);
  const word = /^[\w.-]+/u.exec(state.doc.sliceString(from, from + 100))?.[0] ?? '';
  return { from, to: from + word.length, severity: isWarning ? 'warning' : 'error', message };
}

function offsetOf(state: EditorState, line: number, column: number): number {
  const { from, to } = state.doc.line(Math.max(1, Math.min(line, state.doc.lines)));
  return Math.min(to, from + Math.max(0, column - 1));
}

function inputsOf(state: EditorState): string[] {
  return keysBelow(state, 'inputs').map(({ text }) => text);
}

/** The keys below one at the top of the file, and where each stands. */
function keysBelow(state: EditorState, section: string): { readonly text: string; readonly from: number }[] {
  const textOf = ({ from, to }: { readonly from: number; readonly to: number }): string =>
    state.doc.sliceString(from, to).replace(/^['"]|['"]$/gu, '');
  const top = syntaxTree(state).topNode.getChild('Document')?.getChild('BlockMapping');
  const pair = top?.getChildren('Pair').find((each) => {
    const key = each.getChild('Key');
    return key !== null && textOf(key) === section;
  });
  const pairs = (pair?.getChild('BlockMapping') ?? pair?.getChild('FlowMapping'))?.getChildren('Pair') ?? [];
  return pairs.flatMap((each) => {
    const key = each.getChild('Key');
    return key === null ? [] : [{ text: textOf(key), from: key.from }];
  });
}
