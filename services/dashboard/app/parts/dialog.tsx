/** The browser's own dialog: it holds the focus, and Escape closes it. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Dialog({
  title,
  isOpen,
  onClose,
  children,
}: {
  readonly title: string;
  readonly isOpen: boolean;
  onClose(): void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = element;
    if (isOpen && current?.open === false) current.showModal();
    if (!isOpen && current?.open === true) current.close();
  }, [isOpen]);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {isOpen ? children : null}
    </dialog>
  );
}
