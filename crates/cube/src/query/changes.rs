//! The language in which the dimensions of a cube are changed: text to [`ChangeStatement`]s.
//!
//! ```text
//! changes   = change {";" change} [";"]
//! change    = "add" element ["of" placed {"," placed}] ["below" placed {"," placed}] [place]
//!           | "rename" element "to" name
//!           | "move" element ["from" element] "below" placed {"," placed}
//!           | "link" element "below" placed {"," placed}
//!           | "unlink" element "from" element {"," element}
//!           | "relink" element ["below" element {"," element}]
//!           | "place" element place
//!           | "remove" element {"," element}
//!           | "caption" element [name]             without a name the caption goes
//!           | "alias" element name
//!           | "set" element attribute "=" literal
//!           | "default" element
//! placed    = element ["weight" number]            weight 1 without it
//! place     = ("before" | "after") element         among the elements of the dimension
//! ```
//!
//! `element`, `name` and `literal` are those of queries ([`super`]). An element that is added with `of` is consolidated
//! and holds these children; without it, it is a base element. `move` without `from` takes an element from all of its
//! parents; a parent that it keeps gets the new weight. `relink` undoes an `unlink` of an edge of the source; without
//! parents all of the element.

use super::parser::Parser;
use super::{ElementName, Literal, QueryError, Span};

/// A change of one dimension, as its text says it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeStatement {
    /// Its kind and operands.
    pub action: Action,
    /// Its text.
    pub span: Span,
}

/// The kinds of changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Adds an element.
    Add {
        /// Its name, with the dimension's if no other name determines the dimension.
        element: ElementName,
        /// Its children; absent for a base element.
        children: Option<Vec<Placed>>,
        /// The parents that it gets.
        parents: Vec<Placed>,
        /// Its position; the last one without it.
        place: Option<Neighbour>,
    },
    /// Gives an element another name.
    Rename {
        /// The element.
        element: ElementName,
        /// The new name.
        name: String,
    },
    /// Takes an element from parents and places it below others.
    Move {
        /// The element.
        element: ElementName,
        /// The parent that loses it; all of them without it.
        from: Option<ElementName>,
        /// The parents that get it.
        parents: Vec<Placed>,
    },
    /// Places an element below further parents.
    Link {
        /// The element.
        element: ElementName,
        /// The parents.
        parents: Vec<Placed>,
    },
    /// Takes an element from parents.
    Unlink {
        /// The element.
        element: ElementName,
        /// The parents.
        parents: Vec<ElementName>,
    },
    /// Gives an element the edges of the source back that changes have taken away.
    Relink {
        /// The element.
        element: ElementName,
        /// The parents; all of them without one.
        parents: Vec<ElementName>,
    },
    /// Changes the position of an element.
    Place {
        /// The element.
        element: ElementName,
        /// Its new position.
        place: Neighbour,
    },
    /// Removes elements.
    Remove {
        /// The elements.
        elements: Vec<ElementName>,
    },
    /// Sets the caption of an element.
    Caption {
        /// The element.
        element: ElementName,
        /// The caption; nothing removes it.
        caption: Option<String>,
    },
    /// Adds an alternative name.
    Alias {
        /// The element.
        element: ElementName,
        /// The name.
        alias: String,
    },
    /// Sets an attribute.
    Set {
        /// The element.
        element: ElementName,
        /// The attribute's name.
        attribute: String,
        /// Its value.
        value: Literal,
    },
    /// Makes an element the default of its dimension.
    Default {
        /// The element.
        element: ElementName,
    },
}

/// An end of an edge, with its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The parent or child.
    pub element: ElementName,
    /// The weight.
    pub weight: f64,
}

/// A position beside an element.
#[derive(Debug, Clone, PartialEq)]
pub enum Neighbour {
    /// The one before it.
    Before(ElementName),
    /// The one behind it.
    After(ElementName),
}

/// The words that changes begin with.
const ACTIONS: &str = "add, rename, move, link, unlink, relink, place, remove, caption, alias, set or default";

/// The changes of a text.
///
/// # Errors
/// Text that does not follow the grammar, with what was expected and the place.
pub fn parse_changes(text: &str) -> Result<Vec<ChangeStatement>, QueryError> {
    let mut parser = Parser::new(text)?;
    let mut statements = Vec::new();
    loop {
        let start = parser.span().start;
        let action = parser.action()?;
        statements.push(ChangeStatement { action, span: parser.span_from(start) });
        match (parser.takes_sign(";"), parser.is_at_end()) {
            (_, true) => return Ok(statements),
            (true, false) => {}
            (false, false) => return Err(parser.expected("; or the end of the change")),
        }
    }
}

impl Parser<'_> {
    fn action(&mut self) -> Result<Action, QueryError> {
        let known = [
            "add", "rename", "move", "link", "unlink", "relink", "place", "remove", "caption", "alias", "set",
            "default",
        ];
        let Some(word) = known.into_iter().find(|word| self.takes_word(word)) else {
            return Err(self.expected(ACTIONS));
        };
        if word == "remove" {
            return Ok(Action::Remove { elements: self.list(Self::element)? });
        }
        let element = self.element()?;
        Ok(match word {
            "add" => {
                let children = if self.takes_word("of") { Some(self.list(Self::placed)?) } else { None };
                let parents = if self.takes_word("below") { self.list(Self::placed)? } else { Vec::new() };
                Action::Add { element, children, parents, place: self.neighbour()? }
            }
            "rename" => {
                self.word("to")?;
                Action::Rename { element, name: self.name("the new name")? }
            }
            "move" => {
                let from = if self.takes_word("from") { Some(self.element()?) } else { None };
                self.word("below")?;
                Action::Move { element, from, parents: self.list(Self::placed)? }
            }
            "link" => {
                self.word("below")?;
                Action::Link { element, parents: self.list(Self::placed)? }
            }
            "unlink" => {
                self.word("from")?;
                Action::Unlink { element, parents: self.list(Self::element)? }
            }
            "relink" => {
                let names_parents = self.takes_word("below") || self.takes_word("from");
                let parents = if names_parents { self.list(Self::element)? } else { Vec::new() };
                Action::Relink { element, parents }
            }
            "place" => {
                let place = self.neighbour()?;
                Action::Place { element, place: place.ok_or_else(|| self.expected("before or after"))? }
            }
            "caption" => {
                let ends = self.is_at_end() || self.is_at_sign(";");
                Action::Caption { element, caption: if ends { None } else { Some(self.name("a caption")?) } }
            }
            "alias" => Action::Alias { element, alias: self.name("an alternative name")? },
            "set" => {
                let attribute = self.name("an attribute")?;
                if !self.takes_sign("=") {
                    return Err(self.expected("="));
                }
                Action::Set { element, attribute, value: self.literal()? }
            }
            _ => Action::Default { element },
        })
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut list = vec![item(self)?];
        while self.takes_sign(",") {
            list.push(item(self)?);
        }
        Ok(list)
    }

    fn placed(&mut self) -> Result<Placed, QueryError> {
        let element = self.element()?;
        let weight = match self.takes_word("weight") {
            true => self.decimal("a weight")?,
            false => 1.0,
        };
        Ok(Placed { element, weight })
    }

    fn neighbour(&mut self) -> Result<Option<Neighbour>, QueryError> {
        Ok(if self.takes_word("before") {
            Some(Neighbour::Before(self.element()?))
        } else if self.takes_word("after") {
            Some(Neighbour::After(self.element()?))
        } else {
            None
        })
    }
}
