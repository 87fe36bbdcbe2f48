/** What a field's selection asks for, fragments and all; what `@skip` or `@include` may leave out counts as asked for. */
import type { FieldNode, GraphQLResolveInfo, SelectionSetNode } from 'graphql';
import { Kind } from './library.ts';

type Selecting = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>;

export function selectsField(info: Selecting, name: string): boolean {
  return selectedFields(info).some((field) => field.name.value === name);
}

/** Bytes that an object with these fields has at least, in JSON: its braces, its keys, and a value of one digit for each. */
export function objectBytesMin(info: Selecting): number {
  return selectedFields(info).reduce((sum, field) => sum + (field.alias ?? field.name).value.length + 5, 2);
}

function selectedFields({ fieldNodes, fragments }: Selecting): FieldNode[] {
  const fields: FieldNode[] = [];
  const spread = new Set<string>();
  const add = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) fields.push(selection);
      else if (selection.kind === Kind.INLINE_FRAGMENT) add(selection.selectionSet);
      else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        add(fragments[selection.name.value]?.selectionSet);
      }
    }
  };
  for (const node of fieldNodes) add(node.selectionSet);
  return fields;
}
