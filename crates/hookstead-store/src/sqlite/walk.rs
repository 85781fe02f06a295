//! Walking a table for one page of a list, a stretch of rows at a time, each on a state of its own: a list whose filter
//! takes few rows, or none, must not keep the write-ahead log from being reset until its last row. What a row is and
//! whether it is asked for it does not know.

use hookstead_core::{Cursor, List, Order, Page, QueryError, StoreError};
use rusqlite::{Connection, Row, Rows};

use super::event::Known;
use super::failure::reading;

/// A place in a list: up to three numbers, compared in order.
pub(super) type Place = [u64; 3];

/// A stretch, read on one state of the database.
pub(super) type Stretch<'s> = &'s mut dyn FnMut(&Connection, &Known<'_>) -> Result<(), StoreError>;

/// How many rows may be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// In one stretch, so on one state of the database.
    pub(super) rows_per_stretch: u32,
    /// For one page.
    pub(super) rows_per_page: u32,
}

impl Reach {
    /// A stretch reads 40 MiB at the most where each row has a database page to itself: a tenth of a second on a disk
    /// of today, in which the log grows by a part of its maximum. A page of twenty such stretches is an answer within
    /// a few seconds also then; where rows are small it is well below one.
    pub(super) const USUAL: Self = Self { rows_per_stretch: 5_000, rows_per_page: 100_000 };
}

/// A page that is being gathered.
pub(super) struct Walk<T> {
    order: Order,
    limit: usize,
    items: Vec<(Place, T)>,
    /// Where it came to. At first where the page begins; `None`: at the beginning of the list.
    at: Option<Place>,
    rows_left: u32,
    rows_per_stretch: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    GoesOn,
    /// One more item was found than the page may have.
    IsFull,
    /// There are no more rows.
    IsAtEnd,
}

/// Gathers a page by `stretch`, again and again until the page is full, the list ends, or as many rows were looked at as
/// may be. Then the page is short, and its cursor stands behind the last row that was looked at.
pub(super) fn walk<T>(
    reach: Reach,
    page: &Page,
    mut stretch: impl FnMut(&mut Walk<T>) -> Result<(), StoreError>,
) -> Result<List<T>, StoreError> {
    let mut walk = Walk {
        order: page.order,
        limit: page.limit(),
        items: Vec::new(),
        at: place(page)?,
        rows_left: reach.rows_per_page,
        rows_per_stretch: reach.rows_per_stretch,
        state: State::GoesOn,
    };
    while walk.state == State::GoesOn && walk.rows_left > 0 {
        stretch(&mut walk)?;
    }
    Ok(walk.finish(page))
}

impl<T> Walk<T> {
    /// Where the next stretch begins: behind this; `None`: at the beginning of the list.
    pub(super) fn at(&self) -> Option<Place> {
        self.at
    }

    /// In which order.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// The most rows that the next stretch may look at.
    pub(super) fn rows_max(&self) -> u32 {
        self.rows_left.min(self.rows_per_stretch)
    }

    /// Looks at the rows of one stretch, of which its statement gives [`Walk::rows_max`] at the most. `look` says of each
    /// where it is, and what is listed of it, if it is asked for.
    pub(super) fn take(
        &mut self,
        rows: &mut Rows<'_>,
        doing: &'static str,
        mut look: impl FnMut(&Row<'_>) -> Result<(Place, Option<T>), StoreError>,
    ) -> Result<(), StoreError> {
        let rows_max = self.rows_max();
        let mut looked_at = 0;
        while let Some(row) = rows.next().map_err(reading(doing))? {
            let (place, item) = look(row)?;
            looked_at += 1;
            self.at = Some(place);
            let Some(item) = item else { continue };
            self.items.push((place, item));
            if self.items.len() > self.limit {
                self.state = State::IsFull;
                return Ok(());
            }
        }
        self.rows_left -= looked_at.min(self.rows_left);
        if looked_at < rows_max {
            self.state = State::IsAtEnd;
        }
        Ok(())
    }

    /// There is nothing to look at.
    pub(super) fn end(&mut self) -> Result<(), StoreError> {
        self.state = State::IsAtEnd;
        Ok(())
    }

    fn finish(mut self, page: &Page) -> List<T> {
        self.items.truncate(self.limit);
        let last = self.items.last().map(|(place, _)| *place);
        let end = if self.state == State::GoesOn { self.at } else { last };
        List {
            next: end.map(cursor).or_else(|| page.after.clone()),
            more: self.state != State::IsAtEnd,
            items: self.items.into_iter().map(|(_, item)| item).collect(),
        }
    }
}

/// The text of a place.
pub(super) fn cursor([a, b, c]: Place) -> Cursor {
    Cursor::from_text(format!("{a}.{b}.{c}"))
}

/// The place that a page begins behind.
pub(super) fn place(page: &Page) -> Result<Option<Place>, StoreError> {
    let Some(cursor) = &page.after else { return Ok(None) };
    let error = || StoreError::backend("read a cursor", QueryError::Cursor);
    let numbers: Result<Vec<u64>, _> = cursor.as_str().split('.').map(str::parse).collect();
    numbers.ok().and_then(|numbers| Place::try_from(numbers).ok()).map(Some).ok_or_else(error)
}
